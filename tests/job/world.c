#include "world.h"

size_t w_damage(char *text, size_t n, gt_rng *rng) {
  static const char marks[] = "{}[]:,-#&*!|>'\"%@`?~ \n\t0";
  for (uint64_t edits = 1 + gt_rng_below(rng, 4); edits > 0 && n > 2; edits--) {
    size_t at = gt_rng_below(rng, n), length = 1 + gt_rng_below(rng, 20);
    if (at + length > n) length = n - at;
    switch (gt_rng_below(rng, 5)) {
    case 0:
      text[at] = (char)(text[at] ^ (1 << gt_rng_below(rng, 8)));
      break;
    case 1:
      text[at] = marks[gt_rng_below(rng, sizeof marks - 1)];
      break;
    case 2:
      n = at + 1;
      break;
    case 3:
      memmove(text + at, text + at + length, n - at - length), n -= length;
      break;
    default:
      memmove(text + gt_rng_below(rng, n - length + 1), text + at, length);
      break;
    }
  }
  return n;
}

gt_status w_load(gt_job **job, const char *text, const char *more, const char *const *sets,
                 size_t nsets) {
  char whole[65536];
  const int size = snprintf(whole, sizeof whole, "%s%s", text, more ? more : "");
  assert_true(size >= 0 && (size_t)size < sizeof whole);
  *job = NULL;
  return gt_job_load(job, file_with("job.yaml", whole), sets, nsets);
}

gt_job *w_job(const char *text, const char *more, const char *const *sets, size_t nsets) {
  gt_job *job;
  must(w_load(&job, text, more, sets, nsets));
  return job;
}

const char *w_sentence(const char *file, const char *expected) {
  static char sentence[1024];
  const bool named = expected[0] == '@';
  snprintf(sentence, sizeof sentence, "%s%s", named ? file : "", expected + named);
  return sentence;
}

void w_refused(const char *text, const char *more, const char *const *sets, size_t nsets,
               const char *expected) {
  gt_job *job;
  must_say(w_load(&job, text, more, sets, nsets), GT_ERR_JOB,
           w_sentence(in_folder("job.yaml"), expected));
  assert_null(job);
}

void w_differ(const gt_job *here, const gt_job *there, bool for_resume, const char *expected) {
  char *first = gt_job_resolved(here), *second = gt_job_resolved(there), text[256];
  gt_job_difference(first, second, for_resume, text, sizeof text);
  assert_string_equal(text, expected);
  gt_free(first);
  gt_free(second);
}

char *w_flat(const gt_job *job) {
  char *text;
  FILE *to = open_text(&text);
  gt_job_flat(job, to);
  assert_int_equal(fclose(to), 0);
  return text;
}

gt_job *w_again(const gt_job *job) {
  char *first = gt_job_resolved(job);
  gt_job *again = w_job(first, NULL, NULL, 0);
  char *second = gt_job_resolved(again);
  w_differ(job, again, false, "");
  assert_string_equal(first, second);
  gt_free(first);
  gt_free(second);
  return again;
}
