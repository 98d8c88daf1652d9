/* Chooses methods by measurement: the methods of each product are timed in turns, and the fastest
   is kept. */
#include <math.h>
#include <string.h>

#include "kernels.h"

/* A method that takes more than FAR times the best time so far is dropped after one or two turns.
   A method replaces the rule only if it takes less than GAIN of the rule's time in both halves of
   the turns (or less than SURE of it if it has a single turn). */
#define FAR  1.3
#define GAIN 0.97
#define SURE 0.85
enum { TURNS = 6 };
#define TURN_S 3e-4 /* a turn repeats a product for at least this long */
/* If the best method is faster than this, one bad turn does not drop a method, because another
   program could have had the core. */
#define SHORT_S 1e-3
/* Budget of the whole measurement: BUDGET_S or, if longer, BUDGET_RULE times the products of all
   layers by the rule. */
#define BUDGET_S    2.0
#define BUDGET_RULE 8.0

/* Inputs and outputs of the products of a layer. */
typedef struct {
  void *x, *y, *dx, *dy;
  float *w, *dw, *b, *db;
} operands;

/* A layer with one layer object for each method. */
typedef struct {
  gt_choice *choice;
  gt_algorithm
      rule[GT_PASSES]; /* the method that the rule selects; GT_ALGORITHM_RULE: plain loops */
  gt_layer *layers[GT_ALGORITHMS];
  float *work;
  operands o;
  double halves[GT_PASSES][GT_ALGORITHMS]
               [2]; /* shortest time of even and of odd turns; INFINITY: none */
  int turns[GT_PASSES];
} bench;

static float *normal(size_t n, uint64_t key) {
  gt_rng rng = gt_rng_make(key, GT_RNG_TEST, n, 0);
  float *x = GT_NEW_ARRAY(float, n);
  /* Drawing normal numbers takes as long as the products, so a block of them is repeated. */
  const size_t block = n < 4096 ? n : 4096;
  for (size_t i = 0; i < block; i++) x[i] = (float)gt_rng_normal(&rng);
  for (size_t i = block; i < n; i += block)
    memcpy(x + i, x, (n - i < block ? n - i : block) * sizeof *x);
  return x;
}

static void *values(size_t n, gt_precision type, uint64_t key) {
  float *x = normal(n, key);
  if (type == GT_F32) return x;
  gt_bf16 *half = GT_NEW_ARRAY(gt_bf16, n);
  gt_to_bf16(half, x, n);
  gt_free(x);
  return half;
}

static void open_operands(operands *o, const gt_choice *c) {
  const gt_conv_spec *v = &c->layer.conv;
  const gt_conv_shape *s = &v->shape;
  const size_t nx = c->batch * s->H * s->W * s->C, ny = c->batch * s->P * s->Q * s->K,
               nw = s->R * s->S * s->C * s->K;
  const gt_precision in = c->layer.linear ? GT_F32 : v->in, out = c->layer.linear ? GT_F32 : v->out;
  *o = (operands){.x = values(nx, in, 1),
                  .dx = v->needs_input_gradient ? values(nx, in, 2) : NULL,
                  .y = values(ny, out, 3),
                  .dy = values(ny, out, 4),
                  .w = normal(nw, 5),
                  .dw = normal(nw, 6),
                  .b = v->bias ? normal(s->K, 7) : NULL,
                  .db = v->bias ? normal(s->K, 8) : NULL};
}

static void close_operands(operands *o) {
  void *all[] = {o->x, o->y, o->dx, o->dy, o->w, o->dw, o->b, o->db};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) gt_free(all[i]);
}

/* True if the method is measured.  The one that the rule selects is not measured twice. */
static bool has(const bench *b, int pass, int algorithm) {
  if (pass == GT_PASS_INPUT && !b->choice->layer.conv.needs_input_gradient) return false;
  return algorithm == GT_ALGORITHM_RULE ||
         (algorithm != (int)b->rule[pass] &&
          gt_algorithm_can(&b->choice->layer, b->choice->batch, (gt_pass_id)pass,
                           (gt_algorithm)algorithm));
}

/* Returns the method that the rule selects, or GT_ALGORITHM_RULE if it cannot be chosen by name: in
   bf16 the rule computes small linear layers in float32, which is not among the choices. */
static gt_algorithm rule_of(const gt_layer *layer, const gt_choice *choice, gt_pass_id pass) {
  const gt_algorithm algorithm = gt_layer_algorithm(layer, choice->batch, pass);
  return gt_algorithm_can(&choice->layer, choice->batch, pass, algorithm) ? algorithm
                                                                          : GT_ALGORITHM_RULE;
}

static void open_bench(bench *b, gt_choice *choice, const gt_kernels *kernels,
                       gt_prepared_context **context) {
  size_t work = 0;
  *b = (bench){.choice = choice};
  open_operands(&b->o, choice);
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
    gt_algorithm algorithms[GT_PASSES];
    bool any = false;
    for (int pass = 0; pass < GT_PASSES; pass++) {
      const bool can = has(b, pass, algorithm);
      algorithms[pass] =
          can ? (gt_algorithm)algorithm : GT_ALGORITHM_BLAS; /* not run, and not prepared */
      any = any || can;
      b->halves[pass][algorithm][0] = b->halves[pass][algorithm][1] = INFINITY;
    }
    if (!any) continue;
    b->layers[algorithm] = gt_layer_create(kernels, context, &choice->layer, algorithms);
    for (int pass = 0; algorithm == GT_ALGORITHM_RULE && pass < GT_PASSES; pass++)
      b->rule[pass] = rule_of(b->layers[algorithm], choice, (gt_pass_id)pass);
    gt_layer_prepare(b->layers[algorithm], choice->batch);
    const size_t needs = gt_layer_work(b->layers[algorithm], choice->batch);
    if (needs > work) work = needs;
  }
  b->work = GT_NEW_ARRAY(float, work + 1);
}

static void close_bench(bench *b) {
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
    gt_layer_close(b->layers[algorithm]);
  close_operands(&b->o);
  gt_free(b->work);
}

static void run(const bench *b, int pass, int algorithm) {
  const operands *o = &b->o;
  const size_t N = b->choice->batch;
  if (pass == GT_PASS_FORWARD)
    gt_layer_forward(b->layers[algorithm], o->y, o->x, o->w, o->b, N, b->work);
  if (pass == GT_PASS_INPUT)
    gt_layer_backward_input(b->layers[algorithm], o->dx, o->dy, o->w, N, b->work);
  if (pass == GT_PASS_WEIGHT)
    gt_layer_backward_weight(b->layers[algorithm], o->dw, o->db, o->dy, o->x, N, b->work);
}

/* Returns the seconds per run: the mean over a turn of at least `at_least` runs.  The first run is
   excluded if there are more, because its caches are filled by another method. */
static double turn(const bench *b, int pass, int algorithm, int at_least) {
  const gt_ns start = gt_now();
  run(b, pass, algorithm);
  const gt_ns warm = gt_now();
  int runs = 1;
  for (; runs < at_least || gt_seconds(gt_now() - start) < TURN_S; runs++) run(b, pass, algorithm);
  return runs > 1 ? gt_seconds(gt_now() - warm) / (runs - 1) : gt_seconds(warm - start);
}

static double least_of(const bench *b, int pass, int algorithm) {
  return fmin(b->halves[pass][algorithm][0], b->halves[pass][algorithm][1]);
}

static double best_of(const bench *b, int pass) {
  double best = INFINITY;
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
    best = fmin(best, least_of(b, pass, algorithm));
  return best;
}

/* True if the method can still be the best. */
static bool is_near(const bench *b, int pass, int algorithm) {
  const double best = best_of(b, pass);
  return has(b, pass, algorithm) &&
         (b->turns[pass] < (best < SHORT_S ? 2 : 1) || least_of(b, pass, algorithm) <= FAR * best);
}

/* True if more than one method can still be the best. */
static bool is_open(const bench *b, int pass) {
  int near = 0;
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
    near += is_near(b, pass, algorithm);
  return near > 1;
}

/* Runs one turn of every method that can still be the best.  The first turn only finds the methods
   that are far off; later ones run with warm caches. */
static void take_turn(bench *b, int pass) {
  const int half = b->turns[pass] % 2, runs = b->turns[pass] == 0 ? 1 : 2;
  bool near[GT_ALGORITHMS];
  for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
    near[algorithm] = is_near(b, pass, algorithm);
  for (int i = 0; i < GT_ALGORITHMS; i++) {
    const int algorithm =
        (i + b->turns[pass]) % GT_ALGORITHMS; /* so that no method always goes first */
    if (!near[algorithm]) continue;
    const double took = turn(b, pass, algorithm, runs);
    if (took < b->halves[pass][algorithm][half]) b->halves[pass][algorithm][half] = took;
  }
  b->turns[pass]++;
}

/* Returns the rule's method, unless another is clearly faster. */
static gt_algorithm decide(const bench *b, int pass) {
  const double *rule = b->halves[pass][GT_ALGORITHM_RULE];
  gt_algorithm chosen = b->rule[pass];
  double best = INFINITY;
  for (int algorithm = GT_ALGORITHM_RULE + 1; algorithm < GT_ALGORITHMS; algorithm++) {
    const double *halves = b->halves[pass][algorithm];
    /* If the rule was dropped after one turn, rule[1] is infinite and does not count. */
    const bool beats = isfinite(halves[1])
                           ? halves[0] < GAIN * rule[0] && halves[1] < GAIN * rule[1]
                           : halves[0] < SURE * rule[0];
    if (!beats || least_of(b, pass, algorithm) >= best) continue;
    best = least_of(b, pass, algorithm);
    chosen = (gt_algorithm)algorithm;
  }
  return chosen;
}

static void keep(bench *b) {
  for (int pass = 0; pass < GT_PASSES; pass++) {
    b->choice->algorithms[pass] = b->turns[pass] > 0                ? decide(b, pass)
                                  : has(b, pass, GT_ALGORITHM_RULE) ? b->rule[pass]
                                                                    : GT_ALGORITHM_RULE;
    for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++) {
      const double least = least_of(b, pass, algorithm);
      b->choice->seconds[pass][algorithm] = isinf(least) ? 0 : least;
    }
  }
}

/* True if there is another method to compare with the rule's. */
static bool worth(const bench *b, int pass) {
  int algorithms = 0;
  for (int algorithm = GT_ALGORITHM_RULE + 1; algorithm < GT_ALGORITHMS; algorithm++)
    algorithms += has(b, pass, algorithm);
  return has(b, pass, GT_ALGORITHM_RULE) && algorithms > 0;
}

/* Libraries compile code for the first products of the process, which takes up to 40 ms.  A small
   layer is computed first with every method, so that this time is not charged to the first measured
   layer. */
static void warm_up(const gt_kernels *kernels, gt_prepared_context **context) {
  gt_choice first = {
      .batch = 64,
      .layer = {
          .linear = true,
          .conv = {
              .shape =
                  {.H = 1, .W = 1, .C = 64, .K = 64, .R = 1, .S = 1, .P = 1, .Q = 1, .stride = 1},
              .bias = true,
              .needs_input_gradient = true}}};
  bench b;
  open_bench(&b, &first, kernels, context);
  for (int pass = 0; pass < GT_PASSES; pass++)
    for (int algorithm = 0; algorithm < GT_ALGORITHMS; algorithm++)
      if (has(&b, pass, algorithm)) run(&b, pass, algorithm);
  close_bench(&b);
}

void gt_choices_measure(gt_choices *choices, const gt_kernels *kernels) {
  gt_prepared_context *context = NULL;
  const gt_ns start = gt_now();
  double rule_s = 0; /* of all layers so far */
  gt_machine_key(choices->machine, sizeof choices->machine);
  warm_up(kernels, &context);
  for (size_t i = 0; i < choices->n; i++) {
    bench b;
    open_bench(&b, &choices->items[i], kernels, &context);
    for (int t = 0; t < TURNS; t++)
      for (int pass = 0; pass < GT_PASSES; pass++) {
        /* Two turns are enough to decide.  More are taken within the layer's share of the
           budget. */
        const double share = t < 2 ? 1 : (double)(i + 1) / (double)choices->n;
        if (!worth(&b, pass) || !is_open(&b, pass) ||
            gt_seconds(gt_now() - start) > share * fmax(BUDGET_S, BUDGET_RULE * rule_s))
          continue;
        take_turn(&b, pass);
        if (t == 0) rule_s += b.halves[pass][GT_ALGORITHM_RULE][0];
      }
    keep(&b);
    close_bench(&b);
  }
  if (context) kernels->prepared()->close(context);
  choices->seconds = gt_seconds(gt_now() - start);
}
