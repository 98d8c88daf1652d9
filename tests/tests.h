/* The common part of test files: cmocka with the headers that must precede it, the usual C headers,
   and the main function. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "geotrain/base.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fails the test unless the call returns GT_OK; prints the text of the error. */
#define must(call) must_return(call, GT_OK, NULL, false, __FILE__, __LINE__)
/* Fails the test unless the call returns this status, with `words` in the text of the error. */
#define must_fail(call, status, words) must_return(call, status, words, false, __FILE__, __LINE__)
/* Fails the test unless the call returns this status with exactly this text. */
#define must_say(call, status, text) must_return(call, status, text, true, __FILE__, __LINE__)
void must_return(gt_status found, gt_status expected, const char *words, bool whole,
                 const char *file, int line);
/* Fails the test unless `part` is in the text. */
#define must_contain(text, part) must_have(text, part, __FILE__, __LINE__)
void must_have(const char *text, const char *part, const char *file, int line);

/* Returns the path of `name` in the folder of this test program; valid until its end.  The first
   call creates the folder, which is removed at the end. */
const char *in_folder(const char *name);
/* The folder of another rank takes the place of this program's; that rank removes it. */
void use_folder(const char *path);
void write_bytes(const char *path, const void *data, size_t size);
void write_text(const char *path, const char *text);
/* Writes a text to a file in the folder and returns its path. */
const char *file_with(const char *name, const char *text);
/* Returns a stream; after fclose, *text is what was printed to it, which the caller frees. */
FILE *open_text(char **text);
/* Reads a whole file as text, up to size - 1 bytes; returns its length. */
size_t read_file(const char *path, char *text, size_t size);

typedef void (*test_function)(void);

/* Runs tests between `setup` and `teardown` (NULL is allowed); `names` lists their names, separated
   by ", ".  Returns the number of failed tests. */
int run_functions(const char *names, const test_function *tests, size_t n, CMFixtureFunction setup,
                  CMFixtureFunction teardown);

/* The arguments are function names. */
#define RUN_TESTS(setup, teardown, ...)                                                            \
  run_functions(#__VA_ARGS__, (const test_function[]){__VA_ARGS__},                                \
                sizeof((const test_function[]){__VA_ARGS__}) / sizeof(test_function), setup,       \
                teardown)

/* The main function of a file that only runs tests. */
#define TESTS_BETWEEN(setup, teardown, ...)                                                        \
  int main(void) {                                                                                 \
    return RUN_TESTS(setup, teardown, __VA_ARGS__);                                                \
  }
#define TESTS(...) TESTS_BETWEEN(NULL, NULL, __VA_ARGS__)
