/* Objects in a folder: whole, replaced, missing, damaged, too large; many requests at once; a store
   that fails. */
#include <stdlib.h>
#include <unistd.h>

#include "geotrain/store.h"
#include "tests.h"

#define BYTES ((size_t)300000)

static const char *url(void) {
  static char text[512];
  snprintf(text, sizeof text, "file://%s", in_folder("objects"));
  return text;
}

static gt_object_state ended(const gt_object_request *r) {
  while (gt_objects_state(r) == GT_OBJECT_BUSY) gt_sleep(GT_SECOND / 1000);
  return gt_objects_state(r);
}

static gt_object_state make(gt_objects *o, gt_object_request *r, gt_object_op op, const char *name,
                            void *body, size_t bytes) {
  *r = (gt_object_request){.op = op, .body = body, .bytes = bytes};
  snprintf(r->name, sizeof r->name, "%s", name);
  gt_objects_begin(o, r);
  return ended(r);
}

static void an_object_comes_back_whole(void) {
  gt_objects *o = NULL;
  gt_object_request r;
  uint8_t *out = gt_alloc(BYTES, 1), *in = gt_alloc(BYTES, 1);
  for (size_t i = 0; i < BYTES; i++) out[i] = (uint8_t)(i * i >> 3);
  assert_int_equal(gt_objects_open(&o, url(), "a", 1), GT_OK);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "a/b/1", in, BYTES), GT_OBJECT_MISSING);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "a/b/1", out, BYTES), GT_OBJECT_DONE);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "a/b/1", in, BYTES), GT_OBJECT_DONE);
  assert_int_equal(r.bytes, BYTES);
  assert_memory_equal(in, out, BYTES);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "a/b/1", "x", 1), GT_OBJECT_DONE); /* replaced */
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "a/b/1", in, BYTES), GT_OBJECT_DONE);
  assert_int_equal(r.bytes, 1);
  r = (gt_object_request){
      .op = GT_OBJECT_PUT, .name = "empty", .body = out, .notes = {1, UINT64_MAX, 3}};
  gt_objects_begin(o, &r);
  assert_int_equal(ended(&r), GT_OBJECT_DONE);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "empty", in, BYTES), GT_OBJECT_DONE);
  assert_int_equal(r.bytes, 0);
  assert_true(r.notes[0] == 1 && r.notes[1] == UINT64_MAX && r.notes[2] == 3);
  for (int i = 0; i < 2; i++)
    assert_int_equal(make(o, &r, GT_OBJECT_DELETE, "a/b/1", NULL, 0), GT_OBJECT_DONE);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "a/b/1", in, BYTES), GT_OBJECT_MISSING);
  gt_objects_close(o);
  gt_free(out);
  gt_free(in);
}

static void faults_are_named(void) {
  gt_objects *o = NULL;
  gt_object_request r;
  char path[512], body[64] = "0123456789";
  assert_int_equal(gt_objects_open(&o, url(), "a", 0.2), GT_OK);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "one", body, 10), GT_OBJECT_DONE);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "one", body, 9), GT_OBJECT_FAILED);
  assert_non_null(strstr(r.fault, "has 66 bytes; expected 56 to 65"));
  snprintf(path, sizeof path, "%s/one", in_folder("objects"));
  FILE *file = fopen(path, "r+");
  fputc('x', file); /* one byte of the body */
  fclose(file);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "one", body, sizeof body), GT_OBJECT_FAILED);
  assert_non_null(strstr(r.fault, "another SHA-256"));
  assert_int_equal(truncate(path, 20), 0);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "one", body, sizeof body), GT_OBJECT_FAILED);
  /* a file where a folder has to be */
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "one/two", body, 1), GT_OBJECT_FAILED);
  assert_true(r.fault[0]);
  gt_objects_close(o);
}

static void what_is_damaged_for_a_moment_is_read(void) {
  gt_objects *o = NULL;
  gt_object_request r, get = {.op = GT_OBJECT_GET, .name = "late"};
  char path[512], body[64] = "0123456789", in[64];
  assert_int_equal(gt_objects_open(&o, url(), "a", 10), GT_OK);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "late", body, 10), GT_OBJECT_DONE);
  snprintf(path, sizeof path, "%s/late", in_folder("objects"));
  assert_int_equal(truncate(path, 15), 0);
  get.body = in;
  get.bytes = sizeof in;
  gt_objects_begin(o, &get);
  gt_sleep(GT_SECOND / 5);
  assert_int_equal(gt_objects_state(&get), GT_OBJECT_BUSY);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "late", body, 10), GT_OBJECT_DONE);
  assert_int_equal(ended(&get), GT_OBJECT_DONE);
  assert_memory_equal(in, body, 10);
  gt_objects_close(o);
}

static void many_at_once(void) {
  enum { N = 200 };
  gt_objects *o = NULL;
  static gt_object_request r[N];
  static uint32_t value[N];
  assert_int_equal(gt_objects_open(&o, url(), "a", 10), GT_OK);
  for (uint32_t pass = 0; pass < 3; pass++) {
    for (uint32_t i = 0; i < N; i++) {
      value[i] = pass == 1 ? 0 : i * 7;
      r[i] = (gt_object_request){.op = pass == 0   ? GT_OBJECT_PUT
                                       : pass == 1 ? GT_OBJECT_GET
                                                   : GT_OBJECT_DELETE,
                                 .body = &value[i],
                                 .bytes = sizeof value[i]};
      snprintf(r[i].name, sizeof r[i].name, "%u/%u", i % 5, i);
      gt_objects_begin(o, &r[i]);
    }
    for (uint32_t i = 0; i < N; i++) {
      assert_int_equal(ended(&r[i]), GT_OBJECT_DONE);
      if (pass == 1) assert_int_equal(value[i], i * 7);
    }
  }
  gt_objects_close(o);
}

/* What killed starts of the same owner have left goes with the first object that is written. */
static void half_written_files_go(void) {
  gt_objects *o = NULL;
  gt_object_request r;
  char body[8] = "";
  assert_int_equal(gt_objects_open(&o, url(), "a", 1), GT_OK);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "first", body, 1), GT_OBJECT_DONE);
  gt_objects_close(o);
  const char *own = file_with("objects/.part-a-1-2", "half"),
             *other = file_with("objects/.part-ab-1-2", "half");
  assert_int_equal(gt_objects_open(&o, url(), "a", 1), GT_OK);
  assert_int_equal(make(o, &r, GT_OBJECT_GET, "first", body, 8), GT_OBJECT_DONE);
  assert_int_equal(access(own, F_OK), 0);
  assert_int_equal(make(o, &r, GT_OBJECT_PUT, "first", body, 1), GT_OBJECT_DONE);
  assert_int_not_equal(access(own, F_OK), 0);
  assert_int_equal(access(other, F_OK), 0);
  gt_objects_close(o);
}

static void only_known_urls(void) {
  gt_objects *o = NULL;
  static const char *const wrong[] = {"file://host/a", "/tmp", "http://host/a", "s3://", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_not_equal(gt_objects_open(&o, wrong[i], "a", 1), GT_OK);
  char *path = NULL;
  setenv("GEOTRAIN_CACHE", "/c", 1);
  assert_int_equal(gt_store_copy("https://host/a b", &path), GT_ERR_DATA);
  assert_int_equal(gt_store_copy("https://me:pw@host/a", &path), GT_ERR_DATA);
  assert_null(strstr(gt_error_text(), "pw"));
  assert_int_equal(gt_store_copy("https://host", &path), GT_ERR_DATA);
  assert_int_equal(gt_store_copy("https://host/a#sha256=12", &path), GT_ERR_DATA);
  char *plain = NULL;
  assert_int_equal(gt_store_copy("https://host/x/a.h5?b=/c", &path), GT_OK);
  assert_int_equal(gt_store_copy("https://host/x/a.h5?b=/d", &plain), GT_OK);
  assert_string_not_equal(path, plain); /* a copy for each URL */
  gt_free(path);
  gt_free(plain);
}

TESTS(an_object_comes_back_whole, faults_are_named, what_is_damaged_for_a_moment_is_read,
      many_at_once, half_written_files_go, only_known_urls)
