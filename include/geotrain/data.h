/* data: data sets in HDF5, importers, partition over regions, batches by number.  Layer 3.  Everything is local. */
#ifndef GEOTRAIN_DATA_H
#define GEOTRAIN_DATA_H

#include "geotrain/base_families.h"
#include "geotrain/job.h"

#define GT_DATASET_SCHEMA 1

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* An HDF5 file with schema 1 (docs/data-format.md): attributes `geotrain_schema` 1, `name`, `classes`; groups train and test, each with
   `x` (N,H,W,C) uint8 and `y` (N) int32.  Model input is (x / 255 - mean[c]) / std[c], with float32 attributes `mean` and `std` (C) of the
   training images at the root.  `x` may also be float32, taken as it is, or int32 (N,1,1,F): F ids a sample, below the root's attribute `features`. */
typedef struct gt_dataset gt_dataset;

typedef enum { GT_SPLIT_TRAIN, GT_SPLIT_TEST } gt_split;

typedef enum { GT_INPUT_BYTES, GT_INPUT_FLOATS, GT_INPUT_IDS } gt_input;

typedef struct {
  char name[64];
  size_t h, w, c, classes, ntrain, ntest;
  size_t features; /* IDS: how many there are; else 0 */
  gt_input input;
  char schema_sha256[65];  /* of what must agree between regions: shape, classes, input type, features, mean and std */
  char samples_sha256[65]; /* of all training labels, and the first, middle and last sample */
} gt_dataset_info;

/* Opens and checks a file: HDF5, schema, shapes, types, labels in range, no NaN.  GT_ERR_DATA names the file, the data set in it, what was found and
   what is needed.  */
gt_status gt_dataset_open(gt_dataset **out, const char *path);
void gt_dataset_close(gt_dataset *dataset);
const gt_dataset_info *gt_dataset_describe(const gt_dataset *dataset);
/* The labels of a split (ntrain or ntest of them); owned by the data set. */
const int32_t *gt_dataset_labels(gt_dataset *dataset, gt_split split);
/* The c means and standard deviations of the input (0 and 1 where it is not bytes); owned by the data set. */
const float *gt_dataset_mean(const gt_dataset *dataset);
const float *gt_dataset_std(const gt_dataset *dataset);

/* What means and deviations are made from, of any samples of a data set of C channels: so many
   whole numbers, the pixels of a channel, then each channel's sum of bytes, then each channel's sum
   of their squares.  They are exact, and those of several parts add up to those of all. */
#define GT_DATA_SUMS(channels) (1 + 2 * (channels))
/* Reads the named training samples (rising numbers, n of them) of a data set of bytes and fills in
   sums[GT_DATA_SUMS(c)].  GT_ERR_DATA: it cannot be read. */
gt_status gt_dataset_sums(gt_dataset *dataset, const uint32_t *samples, size_t n, uint64_t *sums);
/* mean[channels] and std[channels] of what the sums are of, as an import writes them into a
   file. */
void gt_data_moments(const uint64_t *sums, size_t channels, float *mean, float *std);
/* From now on the input is normalised with these, mean[c] and std[c] (copied), and schema_sha256 is
   of them; loaders made before keep theirs.  For a data set of bytes. */
void gt_dataset_normalise(gt_dataset *dataset, const float *mean, const float *std);

/* `geotrain data`: SOURCE is the folder with the format's files (docs/data-format.md), gzip or plain; OUT is written under a temporary name and renamed.
   GT_ERR_DATA names the file, what was found and what is needed; GT_ERR_JOB: the format is not known. */
gt_status gt_data_import(const char *format, const char *source, const char *out);
const char *const *gt_data_formats(void);
typedef struct {
  uint64_t seed;
  size_t ntrain, ntest, h, w, classes;
} gt_synth_spec;
/* {1, 4000, 1000, 28, 28, 10}: what `geotrain data synth OUT.h5` writes. */
gt_synth_spec gt_synth_default(void);
/* Small, learnable, deterministic images: smooth class templates, shifted, scaled and noisy. */
gt_status gt_data_synth(const char *out, const gt_synth_spec *spec);

/* ---- partition -------------------------------------------------------------------------------------------------- */

/* How the training samples of one file are divided over regions: every sample in exactly one region, deterministic in (seed).
   shares: a random split in proportion to shares[nregions].  label: whole labels, dealt so that sizes follow the shares as near as labels allow.
   dirichlet: per label, proportions drawn from Dirichlet(alpha) (Yurochkin et al. 2019).  file: each region has its own file and all of it. */
typedef struct {
  gt_part_kind kind;
  size_t nregions;
  const double *shares;     /* nregions, or NULL: equal */
  const char *const *names; /* nregions, for sentences, or NULL: by number */
  double alpha;
  uint64_t seed;
} gt_partition;

/* The samples of `region` (sorted, count in *n): a new array that the caller frees.  GT_ERR_DATA when a region would get none, GT_ERR_JOB: shares or alpha
   that cannot be. */
gt_status gt_partition_part(const gt_partition *p, const int32_t *labels, size_t nlabels, size_t region, uint32_t **samples, size_t *n);

/* Which of the files that a split writes have the test samples, all of them: all, the first, the
   last. */
typedef enum { GT_TESTS_ALL, GT_TESTS_FIRST, GT_TESTS_LAST } gt_tests;
/* Writes FOLDER/NAME-1.h5 and so on from PATH/NAME.h5, a file a region of `p` with its part and
   with the mean and std of that; folder NULL: beside the file.  `wrote` is called after each.
   Errors as gt_dataset_open, gt_partition_part and gt_data_import; files that are written already
   stay. */
gt_status gt_data_split(const char *path, const gt_partition *p, gt_tests tests, const char *folder, void (*wrote)(const char *path));

/* ---- a job's files --------------------------------------------------------------------------- */

/* The file that a region reads: its own, or that of the job. */
const char *gt_data_path(const gt_job *job, size_t region);
/* The first region that names the path of this one: `region` where none before it does. */
size_t gt_data_namesake(const gt_job *job, size_t region);
/* Which regions read the same training samples, under whatever paths: files[r] is the first that
   reads those of region r.  infos, files: one a region.  GT_ERR_DATA says which region has what:
   shape, classes or type differ, or regions name one path and find other samples there, which only
   data.partition.by file allows. */
gt_status gt_data_files(const gt_job *job, const gt_dataset_info *infos, size_t *files);
/* The samples of `region` as gt_partition_part has them: what several regions read is divided among
   them alone, by their shares (data.partition.by file: at random), and what one reads is all its
   own.  labels[n]: of the region's file. */
gt_status gt_data_part(const gt_job *job, const size_t *files, size_t region, const int32_t *labels, size_t n, uint32_t **samples, size_t *count);

/* ---- batches by number ------------------------------------------------------------------------------------------ */

/* A region's seeded order.  Batch b of epoch e = b / batches_per_epoch holds samples [i*batch, min(n, (i+1)*batch)) of the epoch's
   permutation, i = b % batches_per_epoch: every sample once an epoch; the last batch may be short. */
typedef struct {
  uint64_t seed, region;
  size_t n, batch;
} gt_order;

int64_t gt_order_batches_per_epoch(const gt_order *order);
size_t gt_order_batch_size(const gt_order *order, int64_t number);

/* A region's part (or a test split) in memory, and the batches made from it. */
typedef struct gt_loader gt_loader;

/* Reads the named samples (NULL: all n of the split) into memory. */
gt_status gt_loader_create(gt_loader **out, gt_dataset *dataset, gt_split split, const uint32_t *samples, size_t n);
void gt_loader_close(gt_loader *loader);
size_t gt_loader_samples(const gt_loader *loader);
/* What gt_loader_batch does to images: nothing; or a border of 4, a random window of the old size, and a flip of every second one on average (He et al. 2016,
   4.2), drawn from numbers keyed by (seed, region, batch number).  The border of bytes is black, 0 before it is normalised, as in PyTorch's recipes; of floats 0. */
/* From now on.  GT_ERR_JOB where samples are ids. */
gt_status gt_loader_augment(gt_loader *loader, gt_augment augment);
/* Fills x (size,h,w,c), float or int32_t by the data set's input, and y (size) with batch `number` of `order` (order->n is the loader's); returns the number of
   samples.  Allocates nothing. */
size_t gt_loader_batch(gt_loader *loader, const gt_order *order, int64_t number, void *x, int32_t *y);
/* Fills x, y with samples [first, first+count) in file order, as they are; for evaluation. */
void gt_loader_range(gt_loader *loader, size_t first, size_t count, void *x, int32_t *y);

#endif
