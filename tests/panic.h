/* Expected panics, for tests with "wraps: gt_panic" on their first line. */
#pragma once

#include "tests.h"

static jmp_buf panic_back;
static gt_status panic_status; /* GT_OK: none has come */
static bool panic_expected;
static char panic_text[512];

_Noreturn void __wrap_gt_panic(gt_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void __wrap_gt_panic(gt_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(panic_text, sizeof panic_text, format, args);
  va_end(args);
  if (!panic_expected) {
    fprintf(stderr, "panic %d: %s\n", (int)status, panic_text);
    abort(); /* under mpirun it ends the other ranks, too */
  }
  panic_status = status;
  longjmp(panic_back, 1);
}

/* Fails the test unless the statement panics with `words` in its text; its status is in
   panic_status. */
#define must_panic(words, ...)                                                                     \
  do {                                                                                             \
    panic_status = GT_OK;                                                                          \
    panic_expected = true;                                                                         \
    if (setjmp(panic_back) == 0) __VA_ARGS__;                                                      \
    panic_expected = false;                                                                        \
    if (panic_status == GT_OK) fail_msg("did not panic: %s", words);                               \
    if (!strstr(panic_text, words)) fail_msg("\"%s\" does not say \"%s\"", panic_text, words);     \
  } while (0)
