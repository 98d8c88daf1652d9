/* import: the formats that `geotrain data import` reads.  A new format is one file and one line in
   the list of import.c. */
#pragma once

#include "store.h"

/* NAME.c: each function reads `source` and writes the data set `out`. */
gt_status gt_import_mnist(const char *source, const char *out, const gt_import_options *options);
gt_status gt_import_cifar(const char *source, const char *out, const gt_import_options *options);
/* Features that are ids: lines `label id:1 id:1 ...` (Rendle, Factorization Machines with libFM,
   2012). */
#define GT_LIBFM_MAX_FIELDS 65536
gt_status gt_import_libfm(const char *source, const char *out, const gt_import_options *options);
gt_status gt_import_imdb(const char *source, const char *out, const gt_import_options *options);
gt_status gt_import_sessions(const char *source, const char *out, const gt_import_options *options);
/* Pictures in a folder per class, PNG or JPEG. */
gt_status gt_import_folder(const char *source, const char *out, const gt_import_options *options);
/* Tables: one file, or one for training and one for tests. */
gt_status gt_import_csv(const char *const *sources, size_t n, const char *out,
                        const gt_import_options *options);
/* Arrays of NumPy: a folder of .npy files, or an .npz file. */
gt_status gt_import_npy(const char *source, const char *out, const gt_import_options *options);
/* Imports text: the n files `sources` in this order. */
gt_status gt_import_text(const char *const *sources, size_t n, const char *out,
                         const gt_import_options *options, gt_text_found *found);

/* bytes.c.  Replaces the number of ids, by the data, by that of the schema, if there is one;
   GT_ERR_DATA: it has fewer. */
gt_status gt_import_ids(const char *source, const gt_schema *schema, size_t *ids);

/* bytes.c.  For sources with test samples: GT_ERR_JOB if an option asks to hold samples back. */
gt_status gt_import_keeps_tests(const char *source, const gt_import_options *options);

/* bytes.c.  Draws the split of a row by the seed and its number: a test row with the probability
   test_share. */
gt_split gt_import_split_of(const gt_import_options *options, uint64_t row);

/* text.c.  Learns a vocabulary of `count` ids, at least GT_TOKEN_BYTES; of fewer if no pair occurs
   twice any more. Repeatedly merges the most frequent pair of tokens inside pieces; among equally
   frequent pairs the one with the smallest left, then right token.  Never fails. */
gt_tokens *gt_merges_learn(const char *text, size_t length, size_t count);

/* bytes.c: writes the name of the folder, "fashion-mnist" for "/usr/share/datasets/fashion-mnist/";
   fallback if it has none. */
void gt_import_name(const char *folder, const char *fallback, char name[64]);

/* class_file.c: reads the class names from FOLDER/class-names.txt, else from FOLDER/published
   (NULL: none), gzip or plain, one per line, label 0 first, and writes them to the store.
   *classes, the number of classes by the labels, becomes the number of names.  Does nothing if
   neither file exists.  GT_ERR_DATA: too few names, or as gt_class_names_check. */
gt_status gt_import_class_names(gt_data_store *store, const char *folder, const char *published,
                                size_t *classes);
