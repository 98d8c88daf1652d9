/* The mean of the regions' models at the end of a run.  The weights are those of the strategy.
   Models are added in region order as they arrive, so that few of them are in memory at a time.
   Models without weight, of regions that only aggregate, are ignored. */
#include <string.h>

#include "geotrain/ps_ending.h"

void gt_model_mean_open(gt_model_mean *m, size_t nregions, size_t self, const double *weights,
                        size_t nparams, size_t nbuffers) {
  *m = (gt_model_mean){.nregions = nregions,
                       .self = self,
                       .weights = weights,
                       .bad = nregions,
                       .nparams = nparams,
                       .nbuffers = nbuffers};
  m->early = GT_NEW_ARRAY(float *, nregions);
  m->seen = GT_NEW_ARRAY(bool, nregions);
}

void gt_model_mean_close(gt_model_mean *m) {
  for (size_t r = 0; m->early && r < m->nregions; r++) gt_free(m->early[r]);
  gt_free(m->early);
  gt_free(m->seen);
  gt_free(m->first);
  gt_free(m->mean.data);
  *m = (gt_model_mean){0};
}

static void add(gt_model_mean *m, gt_vec params, gt_vec buffers) {
  if (m->bad == m->nregions && !(gt_vec_finite(params) && gt_vec_finite(buffers))) m->bad = m->next;
  float share = (float)m->weights[m->next++];
  gt_vec_axpy(gt_vec_range(m->mean, 0, m->nparams), share, params);
  gt_vec_axpy(gt_vec_range(m->mean, m->nparams, m->nbuffers), share, buffers);
}

static bool same(gt_vec a, const float *b) {
  return a.n == 0 || memcmp(a.data, b, a.n * sizeof *b) == 0;
}

static bool counts(const gt_model_mean *m, size_t region) {
  return m->weights[region] > 0;
}

/* Keeps the first model with weight, for the comparison with the others. */
static void keep_first(gt_model_mean *m, const float *model) {
  m->first = GT_NEW_ARRAY(float, m->nparams + m->nbuffers);
  memcpy(m->first, model, (m->nparams + m->nbuffers) * sizeof *model);
  m->params = gt_vec_of(m->first, m->nparams);
  m->buffers = gt_vec_of(m->first + m->nparams, m->nbuffers);
}

static void add_other(gt_model_mean *m, const float *model) {
  float *params = (float *)(uintptr_t)model, *buffers = params + m->nparams;
  if (!m->params.data) keep_first(m, model);
  m->params_differ |= !same(m->params, params);
  m->buffers_differ |= !same(m->buffers, buffers);
  add(m, gt_vec_of(params, m->nparams), gt_vec_of(buffers, m->nbuffers));
}

/* Adds this region's model and the early models whose turn has come. */
static void add_known(gt_model_mean *m) {
  while (m->next < m->nregions) {
    const size_t region = m->next;
    if (!counts(m, region)) {
      m->next++;
    } else if (region == m->self) {
      add(m, m->params, m->buffers);
    } else if (m->early[region]) {
      add_other(m, m->early[region]);
      gt_free(m->early[region]);
      m->early[region] = NULL;
    } else {
      return;
    }
  }
}

bool gt_model_mean_add(gt_model_mean *m, size_t region, const float *model) {
  if (region == m->self || m->seen[region]) return false;
  m->seen[region] = true;
  if (m->mean.data && m->next == region)
    add_other(m, model);
  else {
    const size_t n = m->nparams + m->nbuffers;
    m->early[region] = GT_NEW_ARRAY(float, n);
    memcpy(m->early[region], model, n * sizeof *model);
  }
  if (m->mean.data) add_known(m);
  return true;
}

void gt_model_mean_begin(gt_model_mean *m, gt_vec params, gt_vec buffers) {
  if (counts(m, m->self)) {
    m->params = params;
    m->buffers = buffers;
  }
  m->mean = gt_vec_of(GT_NEW_ARRAY(float, m->nparams + m->nbuffers), m->nparams + m->nbuffers);
  add_known(m);
}

void gt_model_mean_own(gt_model_mean *m, gt_vec params, gt_vec buffers) {
  m->mean = gt_vec_of(GT_NEW_ARRAY(float, m->nparams + m->nbuffers), m->nparams + m->nbuffers);
  gt_vec_copy(gt_vec_range(m->mean, 0, m->nparams), params);
  gt_vec_copy(gt_vec_range(m->mean, m->nparams, m->nbuffers), buffers);
  if (!gt_vec_finite(m->mean)) m->bad = m->self;
}

/* With a strategy that sends updates, each region has its own batch statistics even if the
   parameters are equal. */
gt_vec gt_model_mean_finish(gt_model_mean *m) {
  if (m->next < m->nregions)
    gt_bug("the mean of %zu models is asked for when %zu are here", m->nregions, m->next);
  if (!m->params_differ) gt_vec_copy(gt_vec_range(m->mean, 0, m->nparams), m->params);
  if (!m->buffers_differ) gt_vec_copy(gt_vec_range(m->mean, m->nparams, m->nbuffers), m->buffers);
  return m->mean;
}
