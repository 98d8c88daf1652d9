/* Synthetic images: one smooth template per class, shifted, scaled and with noise.  Uses only
   additions, products and comparisons, no libm: the same seed gives the same bytes on every
   machine (as long as the compiler does not fuse products and sums, which gcc does not do in ISO C
   mode). */
#include <math.h>
#include <stdio.h>

#include "store.h"

#define GRID      6    /* templates are random on this grid and smooth between its points */
#define MAX_SHIFT 0.11 /* as a fraction of the side, in each direction */
#define NOISE     0.50 /* standard deviation; templates range from about -1 to 1 */
#define COMMON    0.55 /* share of every template common to all classes, so that classes overlap */

gt_synth_spec gt_synth_default(void) {
  return (gt_synth_spec){.seed = 1, .ntrain = 4000, .ntest = 1000, .h = 28, .w = 28, .classes = 10};
}

static gt_status check(const gt_synth_spec *s) {
  if (s->ntrain == 0 || s->ntrain > UINT32_MAX)
    return GT_FAIL(GT_ERR_JOB, "train is %zu; expected 1 to %u samples", s->ntrain, UINT32_MAX);
  if (s->ntest == 0 || s->ntest > UINT32_MAX)
    return GT_FAIL(GT_ERR_JOB, "test is %zu; expected 1 to %u samples", s->ntest, UINT32_MAX);
  if (s->classes < 2 || s->classes > 1000)
    return GT_FAIL(GT_ERR_JOB, "classes is %zu; expected 2 to 1000", s->classes);
  if (s->h < 4 || s->h > 1024 || s->w < 4 || s->w > 1024)
    return GT_FAIL(GT_ERR_JOB, "images are %zu x %zu; expected sides of 4 to 1024", s->h, s->w);
  return GT_OK;
}

/* Values -1 to 1 on the grid points of every class (the grid repeats beyond its edges). */
static double *make_templates(const gt_synth_spec *s) {
  enum { POINTS = GRID * GRID };
  double *templates = GT_NEW_ARRAY(double, s->classes *POINTS);
  gt_rng common = gt_rng_make(s->seed, GT_RNG_SYNTH, 2, 0);
  double shared[POINTS];
  for (int i = 0; i < POINTS; i++) shared[i] = 2 * gt_rng_uniform(&common) - 1;
  for (size_t k = 0; k < s->classes; k++) {
    gt_rng own = gt_rng_make(s->seed, GT_RNG_SYNTH, 3, k);
    for (int i = 0; i < POINTS; i++)
      templates[k * POINTS + (size_t)i] =
          COMMON * shared[i] + (1 - COMMON) * (2 * gt_rng_uniform(&own) - 1);
  }
  return templates;
}

/* Finds the position of a coordinate on the grid: the point before it, the point after it, and the
   fraction between them, smoothed so that the slope is continuous. */
static void locate(double at, size_t *before, size_t *after, double *part) {
  double cell = floor(at), t = at - cell;
  int i = (int)cell % GRID;
  *before = (size_t)(i < 0 ? i + GRID : i);
  *after = (*before + 1) % GRID;
  *part = t * t * (3 - 2 * t);
}

/* Returns an approximately normal number with standard deviation 1: the sum of three uniforms has
   variance 1/4. */
static double noise(gt_rng *rng) {
  double sum = 0;
  for (int i = 0; i < 3; i++) sum += gt_rng_uniform(rng);
  return 2 * sum - 3;
}

/* Makes sample i of a split, which depends only on (seed, split, i) and the templates: a larger
   data set begins with the smaller one. */
static int32_t make_sample(const gt_synth_spec *s, const double *templates, gt_split split,
                           size_t i, uint8_t *image) {
  gt_rng rng = gt_rng_make(s->seed, GT_RNG_SYNTH, (uint64_t)split, i);
  size_t label = (size_t)gt_rng_below(&rng, s->classes), x0, x1, y0, y1;
  const double *grid = templates + label * GRID * GRID;
  double dx = MAX_SHIFT * (2 * gt_rng_uniform(&rng) - 1),
         dy = MAX_SHIFT * (2 * gt_rng_uniform(&rng) - 1);
  double contrast = 0.6 + 0.8 * gt_rng_uniform(&rng);
  double px, py;
  for (size_t y = 0; y < s->h; y++) {
    locate((((double)y + 0.5) / (double)s->h + dy) * (GRID - 1), &y0, &y1, &py);
    for (size_t x = 0; x < s->w; x++) {
      locate((((double)x + 0.5) / (double)s->w + dx) * (GRID - 1), &x0, &x1, &px);
      double top = grid[y0 * GRID + x0] + px * (grid[y0 * GRID + x1] - grid[y0 * GRID + x0]);
      double bottom = grid[y1 * GRID + x0] + px * (grid[y1 * GRID + x1] - grid[y1 * GRID + x0]);
      double v = 127.5 + 100 * (contrast * (top + py * (bottom - top)) + NOISE * noise(&rng));
      image[y * s->w + x] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
  }
  return (int32_t)label;
}

static gt_status write_split(gt_data_store *store, const gt_synth_spec *s, const double *templates,
                             gt_split split) {
  size_t n = split == GT_SPLIT_TRAIN ? s->ntrain : s->ntest, item = s->h * s->w,
         block = 1 + (1U << 20) / item;
  uint8_t *images = gt_alloc(block, item);
  int32_t *labels = GT_NEW_ARRAY(int32_t, block);
  gt_status status = GT_OK;
  for (size_t first = 0; first < n && status == GT_OK; first += block) {
    size_t count = n - first < block ? n - first : block;
    for (size_t i = 0; i < count; i++)
      labels[i] = make_sample(s, templates, split, first + i, images + i * item);
    status = gt_data_store_samples(store, split, first, count, images);
    if (status == GT_OK) status = gt_data_store_labels(store, split, first, count, labels);
  }
  gt_free(labels);
  gt_free(images);
  return status;
}

gt_status gt_data_synth(const char *out, const gt_synth_spec *spec) {
  gt_data_store *store;
  char name[64];
  const gt_data_shape shape = {
      .n = {spec->ntrain, spec->ntest}, .h = spec->h, .w = spec->w, .c = 1};
  GT_TRY(check(spec));
  GT_TRY(gt_data_store_create(&store, out, &shape));
  double *templates = make_templates(spec);
  gt_status status = write_split(store, spec, templates, GT_SPLIT_TRAIN);
  if (status == GT_OK) status = write_split(store, spec, templates, GT_SPLIT_TEST);
  snprintf(name, sizeof name, "synth-%llu", (unsigned long long)spec->seed);
  if (status == GT_OK) status = gt_data_store_finish(store, name, spec->classes);
  gt_free(templates);
  gt_data_store_close(store);
  return status;
}
