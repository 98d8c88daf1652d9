/* Damage of every kind is rejected with a sentence that names the file, without crashes. */
#include "fixture.h"

#include "internal.h"

#include <hdf5.h>

static const char *folder;
static char path[256];
static unsigned char *whole;
static size_t size;

static void assert_refused(const char *needle) {
  gt_ckpt_info info;
  gt_state state;
  must_fail(gt_ckpt_read(path, &info, &state), GT_ERR_CKPT, path);
  must_contain(gt_error_text(), needle);
  assert_null(info.job_yaml);
  assert_int_equal(state.n, 0);
}

static void test_bit_flips(void) {
  gt_rng rng = gt_rng_make(7, GT_RNG_TEST, 0, 0);
  for (int i = 0; i < 300; i++) {
    /* A hundred changes in the user block, the others anywhere. */
    size_t at = gt_rng_below(&rng, i < 100 ? CKPT_BLOCK : size);
    unsigned char bit = (unsigned char)(1u << gt_rng_below(&rng, 8));
    whole[at] ^= bit;
    write_bytes(path, whole, size);
    whole[at] ^= bit;
    assert_refused("");
  }
  write_bytes(path, whole, size);
  assert_true(holds_round(path, 3));
}

static void test_truncations(void) {
  static const size_t early[] = {0, 1, 29, 93, 100, 511, 512, 513, 600};
  for (size_t i = 0; i < COUNT(early); i++) {
    write_bytes(path, whole, early[i]);
    assert_refused("");
  }
  for (size_t n = 700; n < size; n += size / 61) {
    write_bytes(path, whole, n);
    assert_refused("it ends after");
  }
  write_bytes(path, whole, size - 1);
  assert_refused("it ends after");
}

static void test_sentences(void) {
  whole[size / 2] ^= 1;
  write_bytes(path, whole, size);
  whole[size / 2] ^= 1;
  assert_refused("the file says");
  unsigned char *longer = gt_alloc(size + 3, 1);
  memcpy(longer, whole, size);
  write_bytes(path, longer, size + 3);
  gt_free(longer);
  assert_refused("its first line says");
  unlink(path);
  assert_refused("No such file");
  assert_int_equal(mkdir(path, 0777), 0);
  assert_refused("not a regular file");
  rmdir(path);
  assert_int_equal(mkfifo(path, 0666), 0);
  assert_refused("not a regular file");
  unlink(path);
}

/* Writes the file with every `from` replaced by `to`, of the same length, and a valid seal. */
static void put_renamed(const char *from, const char *to) {
  unsigned char *copy = gt_alloc(size, 1);
  memcpy(copy, whole, size);
  for (size_t at = CKPT_BLOCK; at + strlen(from) < size; at++)
    if (memcmp(copy + at, from, strlen(from)) == 0) memcpy(copy + at, to, strlen(to));
  gt_ckpt_file file = {copy, size};
  gt_ckpt_seal(&file);
  write_bytes(path, copy, size);
  gt_free(copy);
}

/* Checkpoints of versions without ids have no such attribute. */
static void test_features_may_be_absent(void) {
  gt_ckpt_info info;
  gt_state state;
  put_renamed("features", "futures!");
  must(gt_ckpt_read(path, &info, &state));
  assert_int_equal(info.features, 0);
  assert_int_equal(info.shape[0], 28);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
}

/* Files with a valid seal but invalid contents: damaged HDF5, and random bytes. */
static void test_sealed_nonsense(void) {
  gt_rng rng = gt_rng_make(8, GT_RNG_TEST, 0, 0);
  unsigned char noise[4096] = {0};
  for (size_t i = CKPT_BLOCK; i < sizeof noise; i++) noise[i] = (unsigned char)gt_rng_u64(&rng);
  gt_ckpt_file file = {noise, sizeof noise};
  gt_ckpt_seal(&file);
  write_bytes(path, noise, sizeof noise);
  assert_refused("HDF5 cannot open it");
  file.size = CKPT_BLOCK;
  gt_ckpt_seal(&file);
  write_bytes(path, noise, file.size);
  assert_refused("HDF5 cannot open it");

  put_renamed("region", "nation"); /* an attribute */
  assert_refused("'region' is missing");
}

/* A file in the folder of another round, or under the name of another region. */
static void test_wrong_place(void) {
  gt_ckpt_info info;
  gt_state state;
  write_bytes(path, whole, size);
  must(gt_ckpt_read_round(folder, 3, "shanghai", &info, &state));
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  char other[256], there[256];
  snprintf(other, sizeof other, "%s/ckpt/4", folder);
  snprintf(there, sizeof there, "%s/ckpt/3", folder);
  assert_int_equal(rename(there, other), 0);
  must_fail(gt_ckpt_read_round(folder, 4, "shanghai", &info, &state), GT_ERR_CKPT,
            "round 3 of region shanghai; expected round 4");
  assert_int_equal(rename(other, there), 0);
}

/* ---- sealed files that refer to others ------------------------------------------------------- */

#define SECRET "/etc/hostname" /* any file readable by the reader */

static void to_external_storage(hid_t model) {
  const hsize_t n = 2;
  hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(plist, SECRET, 0, n * sizeof(float));
  H5Dclose(H5Dcreate2(model, "params", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT));
  H5Pclose(plist);
  H5Sclose(space);
}

static void to_external_link(hid_t model) {
  H5Lcreate_external(SECRET, "/x", model, "params", H5P_DEFAULT, H5P_DEFAULT);
}

static void to_virtual(hid_t model) {
  const hsize_t n = 2;
  hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(plist, space, SECRET, "/x", space);
  H5Dclose(H5Dcreate2(model, "params", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT));
  H5Pclose(plist);
  H5Sclose(space);
}

/* A dataset of 8 GB without stored data. */
static void to_nothing(hid_t model) {
  const hsize_t n = 2000000000;
  hid_t space = H5Screate_simple(1, &n, NULL);
  H5Dclose(
      H5Dcreate2(model, "params", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
}

/* The same in one compressed chunk. */
static void to_chunk(hid_t model) {
  const hsize_t n = 400000000;
  hid_t space = H5Screate_simple(1, &n, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(plist, 1, &n);
  H5Pset_deflate(plist, 9);
  H5Dclose(H5Dcreate2(model, "params", H5T_IEEE_F32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT));
  H5Pclose(plist);
  H5Sclose(space);
}

static void reseal(void) {
  gt_ckpt_file file;
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  file.size = (size_t)ftell(f);
  rewind(f);
  file.bytes = gt_alloc(file.size, 1);
  assert_int_equal(fread(file.bytes, 1, file.size, f), file.size);
  fclose(f);
  gt_ckpt_seal(&file);
  write_bytes(path, file.bytes, file.size);
  gt_free(file.bytes);
}

static void test_other_files(void) {
  static const struct {
    void (*make)(hid_t model);
    const char *words;
  } cases[] = {{to_external_storage, "stored in another file"},
               {to_external_link, "an external link"},
               {to_virtual, "stored in other files"},
               {to_nothing, "declares 8000000000 bytes and the file holds 0"},
               {to_chunk, "declares 1600000000 bytes and the file holds 0"}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    gt_ckpt_source *source;
    gt_ckpt_info info;
    gt_state state;
    write_bytes(path, whole, size);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t model = H5Gopen2(file, "model", H5P_DEFAULT);
    assert_true(model >= 0 && H5Ldelete(model, "params", H5P_DEFAULT) >= 0);
    cases[i].make(model);
    H5Gclose(model);
    H5Fclose(file);
    reseal();
    assert_refused(cases[i].words);
    must_fail(gt_ckpt_source_open(&source, path, &info, &state), GT_ERR_CKPT, cases[i].words);
  }
}

/* A whole group in another file. */
static void test_group_of_another_file(void) {
  write_bytes(path, whole, size);
  hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(H5Ldelete(file, "optim", H5P_DEFAULT) >= 0);
  H5Lcreate_external(SECRET, "/", file, "optim", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  reseal();
  assert_refused("an external link");
}

static int prepare(void **unused) {
  (void)unused;
  gt_ckpt_writer *writer;
  folder = in_folder("");
  if (gt_ckpt_writer_create(&writer, folder, "shanghai") != GT_OK ||
      write_round(writer, 3) != GT_OK)
    return -1;
  gt_ckpt_writer_close(writer);
  gt_ckpt_path(path, sizeof path, folder, 3, "shanghai");
  gt_ckpt_file file;
  if (gt_ckpt_file_read(&file, path) != GT_OK) return -1;
  whole = file.bytes;
  size = file.size;
  return 0;
}

static int finish(void **unused) {
  (void)unused;
  gt_free(whole);
  return 0;
}

TESTS_BETWEEN(prepare, finish, test_bit_flips, test_truncations, test_sealed_nonsense,
              test_features_may_be_absent, test_sentences, test_wrong_place, test_other_files,
              test_group_of_another_file)
