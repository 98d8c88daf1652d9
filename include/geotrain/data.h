/* data: data sets in HDF5, importers, partition over regions, batches by number.  Layer 3.  All
   functions are local. */
#pragma once

#include "geotrain/base_families.h"
#include "geotrain/data_text.h"
#include "geotrain/job.h"

#define GT_DATASET_SCHEMA 1

/* ---- files ----------------------------------------------------------------------------------- */

/* An HDF5 file with schema 1 (docs/data-format.md): attributes `geotrain_schema` 1, `name`,
   `classes`; groups train and test, each with `x` and `y` (N) int32.
   - uint8 images: x (N,H,W,C); the model sees (x / 255 - mean[c]) / std[c].  The root's float32
     attributes `mean` and `std` (C) are those of the training images.
   - float32 images: x (N,H,W,C), used unchanged.
   - float32 tables: x (N,1,1,C), one value per column; the model sees (x - mean[c]) / std[c], with
     attributes as for images, or unchanged values without them.
   - ids: x int32 (N,1,1,F), F ids per sample, each below the root's attribute `features`.  If ids
     are words, the data set `vocabulary` lists them; if they are tokens of a text, the data set
     `merges` defines them (data_text.h).  The root's attribute `vocabulary_sha256` is the hash of
     either.  Samples of a text are windows; their labels are their own ids, shifted by one, and y
     is 0.
   The root's optional attribute `class_names` has the name of each class. */
typedef struct gt_dataset gt_dataset;

typedef enum { GT_SPLIT_TRAIN, GT_SPLIT_TEST } gt_split;

typedef enum { GT_INPUT_BYTES, GT_INPUT_FLOATS, GT_INPUT_IDS } gt_input;

/* The names that regions must number alike (src/data/schema.h). */
typedef struct gt_schema gt_schema;

/* The names of n classes, class 0 first: NUL-terminated strings, one after the other, `bytes` in
   all.  n 0: the classes have no names. */
typedef struct {
  char *text;
  size_t n, bytes, room; /* room: bytes allocated */
} gt_class_names;
/* A class with different names in two lists of n names; the names point into the lists.
   gt_class_names_differ finds the first such class; false: the lists are equal. */
typedef struct {
  size_t class;
  const char *a, *b;
} gt_class_difference;
bool gt_class_names_differ(const char *a, const char *b, size_t n, gt_class_difference *out);

typedef struct {
  char name[64];
  size_t h, w, c, classes, ntrain, ntest;
  size_t features; /* IDS: number of ids; else 0 */
  gt_input input;
  bool scaled; /* mean and std apply: uint8 images, and tables of float32 */
  bool text;   /* IDS: tokens of a text */
  /* IDS of words or tokens: SHA-256 of the data set's vocabulary; else "" */
  char vocabulary_sha256[65];
  /* SHA-256 of the class names, "" if the file has none, and their bytes */
  char class_names_sha256[65];
  size_t class_names_bytes;
  const char *class_names; /* the names themselves, borrowed; NULL: none, or unknown here */
  /* SHA-256 of the properties that must agree between regions: shape, classes, input type,
     features, vocabulary, mean, std.  Class names are optional and not included. */
  char schema_sha256[65];
  /* SHA-256 of all training labels and of the first, middle and last training sample */
  char samples_sha256[65];
  /* the same for the test samples; "": none */
  char tests_sha256[65];
} gt_dataset_info;

/* Opens and checks a file: HDF5, schema, shapes, types, labels in range, no NaN.  GT_ERR_DATA names
   the file, the data set in it, and the values found and expected. */
gt_status gt_dataset_open(gt_dataset **out, const char *path);
/* Returns a data set of the same description without samples, for a region that only aggregates;
   its means and standard deviations are set by the next gt_dataset_normalise.  The caller closes
   it. */
gt_dataset *gt_dataset_empty(const gt_dataset_info *like);
void gt_dataset_close(gt_dataset *dataset);
const gt_dataset_info *gt_dataset_describe(const gt_dataset *dataset);
/* Returns the names of the classes, owned by the data set. */
const gt_class_names *gt_dataset_class_names(const gt_dataset *dataset);
/* Appends a copy of `name`; without control characters (gt_text_flatten).  The caller frees
   names->text. */
void gt_class_names_add(gt_class_names *names, const char *name);
/* Appends to `names` the names of `more` that it does not have, each once. */
void gt_class_names_join(gt_class_names *names, const gt_class_names *more);
/* Numbers the classes as `all` does, and takes over its names.  GT_ERR_DATA: `all`, the classes of
   `whose`, lacks one of them; nothing has changed. */
gt_status gt_dataset_number_classes(gt_dataset *dataset, const gt_class_names *all,
                                    const char *whose);
/* Returns the labels of a split (ntrain or ntest of them); owned by the data set. */
const int32_t *gt_dataset_labels(gt_dataset *dataset, gt_split split);
/* Reports, one sentence each, properties of a valid file of images that are probably not intended:
   channels first, almost constant images, mean or std in other units.  Call it before
   gt_dataset_normalise.  GT_ERR_DATA: the first training images cannot be read. */
gt_status gt_dataset_doubts(gt_dataset *dataset, void (*tell)(const char *text));
/* Writes a PNG file with a row for each of the first *rows classes, of its first *columns training
   images; float images from their smallest value, black, to the largest, white.  GT_ERR_DATA:
   samples are no images of 1 or 3 channels, or a file cannot be read or written. */
gt_status gt_dataset_sheet(gt_dataset *dataset, const char *path, size_t *rows, size_t *columns);
/* Returns the tokens of a text (IDS), owned by the data set; else NULL. */
const gt_tokens *gt_dataset_tokens(const gt_dataset *dataset);
/* Returns the c means and standard deviations of the input (0 and 1 unless it is scaled); owned by
   the data set. */
const float *gt_dataset_mean(const gt_dataset *dataset);
const float *gt_dataset_std(const gt_dataset *dataset);

/* Sums over any samples of a scaled data set of C channels, from which means and standard
   deviations are computed: the number of pixels of one channel, then each channel's sum of values,
   then each channel's sum of squares.  Those of bytes are integers below 2^53 (up to 10^11 pixels),
   so sums of parts add up to the sum of the whole. */
#define GT_DATA_SUMS(channels) (1 + 2 * (channels))
/* Reads the given training samples (n ascending numbers) of a scaled data set and fills
   sums[GT_DATA_SUMS(c)].  GT_ERR_DATA: the file cannot be read. */
gt_status gt_dataset_sums(gt_dataset *dataset, const uint32_t *samples, size_t n, double *sums);
/* Computes mean[channels] and std[channels] from the sums, as an import writes them to a file: of
   bytes divided by 255; 0 and 1 for a column of a table with values 0 and 1 only. */
void gt_data_moments(gt_input input, const double *sums, size_t channels, float *mean, float *std);
/* Writes the input of a model, x (pixels,c), for bytes (pixels,c): (byte / 255 - mean[c]) / std[c],
   as loaders do. */
void gt_data_scale(float *x, const uint8_t *bytes, size_t pixels, size_t c, const float *mean,
                   const float *std);
/* Does the same to n rows of a table, x (n,c): (x - mean[c]) / std[c]. */
void gt_data_scale_rows(float *x, size_t n, size_t c, const float *mean, const float *std);
/* Normalises the input of a scaled data set with mean[c] and std[c] (copied) from now on;
   schema_sha256 includes them.  Loaders created earlier keep the old values. */
void gt_dataset_normalise(gt_dataset *dataset, const float *mean, const float *std);

/* Options of formats; 0 or NULL: the format's default. */
typedef struct {
  /* number of words with an id: the most frequent ones of the training split; text: number of
     tokens */
  uint64_t vocabulary;
  const char *vocabulary_of; /* text: use the tokens of this data set instead */
  /* words and sessions: ids per sample, the last ones; text: ids per sample minus 1 */
  uint64_t length;
  /* for the test split: text: share of its bytes, at the end; folder without `test`: share of each
     class, drawn by the seed; csv with one file: share of the rows */
  const double *test_share;
  uint64_t seed;
  bool holds_back;      /* set by gt_data_import: test_share above 0, or seed, is given */
  size_t height, width; /* folder: of all samples; 0: the size that all pictures have */
  size_t channels;      /* folder: 1 or 3; 0: 1 if all pictures are gray */
  bool strict;          /* folder: refuse pictures that cannot be read; else leave them out */
  /* csv: the column of the labels; the columns to use, with commas between them (NULL: all others);
     rows without a value: refuse (NULL), drop or mean; samples: ids (NULL) or numbers */
  const char *label, *columns, *missing, *as;
  /* all but text: a schema, a file or a data set; the second is its content, set by
     gt_data_import */
  const char *schema;
  const gt_schema *names;
} gt_import_options;
/* The results of an import of text. */
typedef struct {
  size_t bytes, vocabulary, samples[2], left[2]; /* left: ids that fill no sample, by gt_split */
} gt_text_found;
/* Imports a data set, as `geotrain data import` does.  Formats of text take the n files `sources`,
   concatenated; csv takes one file, or one for each split; other formats take the folder with their
   files (docs/data-format.md), gzip or plain.  OUT is written under a temporary name and then
   renamed.  found: written by formats of text; NULL is allowed.  GT_ERR_DATA: the text names the
   file and the values found and expected.  GT_ERR_JOB: unknown format, or an option that is out of
   range or unknown to the format. */
gt_status gt_data_import(const char *format, const char *const *sources, size_t n, const char *out,
                         const gt_import_options *options, gt_text_found *found);
/* Sets *takes_files if gt_data_import takes several files for this format.  GT_ERR_JOB, with the
   known formats: no such format. */
gt_status gt_data_format_find(bool *takes_files, const char *format);
typedef struct {
  uint64_t seed;
  size_t ntrain, ntest, h, w, classes;
} gt_synth_spec;
/* Returns {1, 4000, 1000, 28, 28, 10}: the defaults of `geotrain data synth OUT.h5`. */
gt_synth_spec gt_synth_default(void);
/* Writes small, learnable, deterministic images: smooth class templates, shifted, scaled and
   noisy. */
gt_status gt_data_synth(const char *out, const gt_synth_spec *spec);

/* ---- partition ------------------------------------------------------------------------------- */

/* The division of the training samples of one file among regions: every sample goes to exactly one
   region, determined by the seed.
   shares: a random split in proportion to shares[nregions].
   label: whole labels, distributed so that sizes follow the shares as closely as labels allow.
   dirichlet: per label, proportions drawn from Dirichlet(alpha) (Yurochkin et al. 2019).
   file: each region has its own file and uses all of it. */
typedef struct {
  gt_part_kind kind;
  size_t nregions;
  const double *shares;     /* nregions values, or NULL: equal */
  const char *const *names; /* nregions names for error messages, or NULL: numbers */
  double alpha;
  uint64_t seed;
} gt_partition;

/* Finds the samples of `region` (sorted, *n of them), in a new array that the caller frees.
   GT_ERR_DATA: a region would get no samples; GT_ERR_JOB: invalid shares or alpha. */
gt_status gt_partition_part(const gt_partition *p, const int32_t *labels, size_t nlabels,
                            size_t region, uint32_t **samples, size_t *n);

/* The files written by a split that contain the test samples (always all of them): every file, the
   first or the last. */
typedef enum { GT_TESTS_ALL, GT_TESTS_FIRST, GT_TESTS_LAST } gt_tests;
/* Succeeds if a command is allowed to write `out`.  GT_ERR_JOB: `out` is the file `input` (NULL:
   none), or, unless `force`, it exists and is not an HDF5 file. */
gt_status gt_data_check_output(const char *out, const char *input, bool force);
/* Splits PATH/NAME.h5 into FOLDER/NAME-1.h5 and so on, one file per region of `p`, with its samples
   and with their mean and std.  folder NULL: the folder of PATH.  All output names are checked
   first with gt_data_check_output.  `wrote` is called after each file.  Errors as for
   gt_dataset_open, gt_partition_part and gt_data_import; files already written remain. */
gt_status gt_data_split(const char *path, const gt_partition *p, gt_tests tests, const char *folder,
                        bool force, void (*wrote)(const char *path));

/* ---- schemas --------------------------------------------------------------------------------- */

/* Makes the union of n schemas, files or data sets, in their order: a text, which the caller frees.
   GT_ERR_DATA: a file is malformed, or has other columns or another kind of data than the first. */
gt_status gt_data_schema(const char *const *paths, size_t n, char **text);
/* Copies a data set with other classes: each of the n texts OLD=NEW renames one, and classes of one
   name become one; then, with a schema (NULL: none), numbered as it says.  Classes without names
   are named by their numbers.  GT_ERR_JOB: a text of another form, or an unknown class. */
gt_status gt_data_classes(const char *path, const char *out, const char *const *renames, size_t n,
                          const char *schema);

/* ---- rows of a table ------------------------------------------------------------------------- */

/* Returns the columns of a data set from a table, as a schema's text of *bytes bytes, which the
   caller frees; NULL: it has none.  GT_ERR_DATA: they cannot be read. */
gt_status gt_dataset_columns(const gt_dataset *dataset, char **text, size_t *bytes);
/* Adds what ids and columns mean to the state of a model: of a text its n merges, which can be 0,
   and the columns of a table (NULL: none) or, without them, the hash of a vocabulary of words ("":
   none).  All are borrowed. */
void gt_data_save_ids(gt_state *state, bool text, const int64_t *merges, size_t n,
                      const char *columns, size_t bytes, const char *vocabulary_sha256);
/* Reads a table of comma-separated values, with a header, as samples of a model that was trained on
   a data set with these columns. */
typedef struct gt_rows gt_rows;
/* Opens the file.  columns: `bytes` bytes of gt_dataset_columns, from `columns_of`; ids: samples
   are ids, else float32.  The caller closes *out, also after an error.  GT_ERR_DATA: the columns
   are malformed, the file cannot be read, or it lacks one. */
gt_status gt_rows_open(gt_rows **out, const char *path, const char *columns, size_t bytes, bool ids,
                       const char *columns_of);
void gt_rows_close(gt_rows *rows); /* NULL is allowed */
/* Returns the number of values of a sample, 4 bytes each. */
size_t gt_rows_width(const gt_rows *rows);
/* Reads the next row into x (width), not normalised; *more false: there is none, or the file cannot
   be read further.  GT_ERR_DATA with *more true: this row is malformed, lacks a value, or has one
   of another kind. */
gt_status gt_rows_next(gt_rows *rows, void *x, bool *more);
/* Returns the line at which the last row begins. */
size_t gt_rows_line(const gt_rows *rows);

/* ---- a job's files --------------------------------------------------------------------------- */

/* Regions that only aggregate, and regions without the first stage of a pipeline, have no data
   (gt_job_reads). */

/* Ascending numbers of samples. */
typedef struct {
  uint32_t *samples;
  size_t n;
} gt_data_samples;

/* Returns the first region with data. */
size_t gt_data_first(const gt_job *job);
/* Returns the data file of a region: its own, or that of the job. */
const char *gt_data_path(const gt_job *job, size_t region);
/* Opens the data file of a region, and checks that data.augment applies to it.  The caller closes
   *out, which is NULL after an error.  Errors as gt_dataset_open; GT_ERR_JOB: data.augment. */
gt_status gt_data_open(gt_dataset **out, const gt_job *job, size_t region);
/* Where the mean and std of the regions' data come from: from each file, since all have the same;
   from the job; from the first region, which is there whenever the run begins; or from the sums over
   all regions. */
typedef enum { GT_NORM_FILES, GT_NORM_JOB, GT_NORM_FIRST, GT_NORM_SUMS } gt_norm_source;
/* Returns it; infos: of every region. */
gt_norm_source gt_data_norm_source(const gt_job *job, const gt_dataset_info *infos);
/* Normalises a region's data with the mean and std of the job, which has them.  GT_ERR_JOB: it
   names `path` if the samples are not scaled, or have another number of channels. */
gt_status gt_data_normalise(gt_dataset *dataset, const gt_job *job, const char *path);
/* Returns the first region with the same path as this one; `region` itself if no earlier one has
   it. */
size_t gt_data_namesake(const gt_job *job, size_t region);
/* Joins the class names of all regions with data, in their order, for data.classes union; the
   caller frees all->text.  names: nregions; n 0: the classes have no names.  infos: nregions; a
   region with h 0 is left out (NULL: none).  GT_ERR_DATA: a region has no names. */
gt_status gt_data_unite(const gt_job *job, const gt_class_names *names,
                        const gt_dataset_info *infos, gt_class_names *all);
/* The most of anything that another region can say that its data has. */
#define GT_DATA_SIZE_MAX ((size_t)1 << 28)
/* Checks what other regions say of their data, before it is used.  GT_ERR_FAULT names the region.
   gt_data_check_infos ends the texts of infos and sets class_names to NULL; gt_data_check_names
   checks that a region's class_names, class_names_bytes long, has a name for each class. */
gt_status gt_data_check_size(const gt_job *job, size_t region, const char *what, size_t n);
gt_status gt_data_check_infos(const gt_job *job, gt_dataset_info *infos);
gt_status gt_data_check_names(const gt_job *job, const gt_dataset_info *infos);
/* Finds the regions that read the same training samples, under any paths: files[r] is the first
   region that reads those of region r; r itself if it has no data.  infos, files: one entry per
   region.  GT_ERR_DATA names the regions if shape, classes, class names or type differ, or if
   regions with the same path found different samples there, which only data.partition.by file
   allows. */
gt_status gt_data_files(const gt_job *job, const gt_dataset_info *infos, size_t *files);
/* Returns the first region whose class names differ from those of an earlier one; nregions: none.
   If the result is below nregions, gt_data_files also reads infos[].class_names of the regions with
   names. */
size_t gt_data_renamed(const gt_job *job, const gt_dataset_info *infos);
/* Finds the samples of `region`, as gt_partition_part does.  If several regions read the same file,
   it is divided among these only, by data.partition.by and their shares (by file: at random).  The
   only reader of a file gets all samples.  labels[n]: of the region's file.  held: the samples that
   data.validation holds back, which are not in *part.  The caller frees the samples of both.
   GT_ERR_DATA also: too few for both. */
gt_status gt_data_part(const gt_job *job, const size_t *files, size_t region, const int32_t *labels,
                       size_t n, gt_data_samples *part, gt_data_samples *held);
/* Finds how many of a region's n samples data.validation holds back.  GT_ERR_DATA: none or all. */
gt_status gt_data_held(const gt_job *job, size_t region, size_t n, size_t *held);

/* ---- batches by number ----------------------------------------------------------------------- */

/* A region's seeded order of samples.  Batch b of epoch e = b / batches_per_epoch holds samples
   [i*batch, min(n, (i+1)*batch)) of the epoch's permutation, i = b % batches_per_epoch: every
   sample occurs once per epoch, and the last batch can be short.  With `whole`, all batches are
   full: the remainder of the permutation is skipped in this epoch. */
typedef struct {
  uint64_t seed, region;
  size_t n, batch;
  bool whole; /* drop the last short batch; n must be at least batch */
} gt_order;

int64_t gt_order_batches_per_epoch(const gt_order *order);
size_t gt_order_batch_size(const gt_order *order, int64_t number);

/* A region's samples (or a test split) in memory, and the batches made from them. */
typedef struct gt_loader gt_loader;

/* Reads the given samples (NULL: all n of the split) into memory. */
gt_status gt_loader_create(gt_loader **out, gt_dataset *dataset, gt_split split,
                           const uint32_t *samples, size_t n);
void gt_loader_close(gt_loader *loader);
size_t gt_loader_samples(const gt_loader *loader);
/* Augmentation of images in gt_loader_batch: none; or a border of 4, a random window of the
   original size, and a horizontal flip with probability 1/2 (He et al. 2016, 4.2), from random
   numbers keyed by (seed, region, batch number).  The border of uint8 images is black (0 before
   normalisation, as in PyTorch's recipes); that of float images is 0. */
/* Sets the augmentation of all later batches.  GT_ERR_JOB if samples are ids. */
gt_status gt_loader_augment(gt_loader *loader, gt_augment augment);
/* Fills x (size,h,w,c), float or int32_t depending on the data set's input, and y (size) with batch
   `number` of `order` (order->n must be that of the loader).  Returns the number of samples. Does
   not allocate. */
size_t gt_loader_batch(gt_loader *loader, const gt_order *order, int64_t number, void *x,
                       int32_t *y);
/* Fills x, y with samples [first, first+count) in file order, without augmentation; for
   evaluation. */
void gt_loader_range(gt_loader *loader, size_t first, size_t count, void *x, int32_t *y);
