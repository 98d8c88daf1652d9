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
