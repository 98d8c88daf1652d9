/* Pictures: a small step as text, letter by letter, and as SVG. */
#include "world.h"
#include "tests.h"

static char *draw(const world *w, gt_pipe_kind kind, size_t columns,
                  char *(*by)(const gt_pipe_schedule *, const gt_pipe_problem *,
                              const gt_pipe_result *, size_t)) {
  gt_pipe_schedule *s = w_make(w, kind, NULL);
  gt_pipe_result r;
  must(gt_pipe_evaluate(&r, s, &w->problem, 1));
  char *text = by(s, &w->problem, &r, columns);
  gt_pipe_result_close(&r);
  gt_pipe_schedule_close(s);
  return text;
}

static void text_by_hand(void) {
  world w;
  w_alike(&w, 2, 1, 3, 1, 1, 1, 0);
  char *text = draw(&w, GT_PIPE_1F1B, 12, gt_pipe_text);
  assert_string_equal(text, "stage 0   |FF..BWFBW.BW|\n"
                            "stage 1   |.FBWFBWFBW..|\n");
  gt_free(text);
  text = draw(&w, GT_PIPE_1F1B, 24, gt_pipe_text);
  assert_string_equal(text, "stage 0   |FFFF....BBWWFFBBWW..BBWW|\n"
                            "stage 1   |..FFBBWWFFBBWWFFBBWW....|\n");
  gt_free(text);
}

static void odd_chunks_are_small(void) {
  world w;
  w_alike(&w, 2, 2, 1, 1, 1, 1, 0);
  char *text = draw(&w, GT_PIPE_ZB_V, 10, gt_pipe_text);
  assert_string_equal(text, "stage 0   |F..fbw..BW|\n"
                            "stage 1   |.Ff..bwBW.|\n");
  gt_free(text);
}

static size_t count(const char *text, const char *what) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) n++;
  return n;
}

/* 2 stages x 3 micro-batches; BW is two boxes. */
static void svg_has_a_box_for_each_pass(void) {
  world w;
  w_alike(&w, 2, 1, 3, 1, 1, 1, 0);
  char *svg = draw(&w, GT_PIPE_1F1B, 800, gt_pipe_svg);
  assert_int_equal(count(svg, "<rect "), 18);
  assert_int_equal(count(svg, "</title></rect>"), 18);
  assert_int_equal(count(svg, "<title>F "), 6);
  assert_int_equal(count(svg, "<title>B "), 6);
  assert_int_equal(count(svg, "<title>W "), 6);
  assert_int_equal(count(svg, "<text "), 18 + 2 + 11); /* numbers, stages, axis */
  assert_int_equal(count(svg, "</text>"), 18 + 2 + 11);
  must_contain(svg, "<title>W 2, span 1, 9 s to 10 s</title>");
  assert_ptr_equal(strstr(svg, "<svg "), svg);
  assert_string_equal(svg + strlen(svg) - 7, "</svg>\n");
  /* boxes of a row begin at the label, 64 pixels, and end as far from the other side */
  must_contain(svg, "<rect x=\"64.00\" y=\"4\" width=\"56.00\" height=\"24\"");
  must_contain(svg, "<rect x=\"680.00\" y=\"4\" width=\"56.00\" height=\"24\"");
  gt_free(svg);
}

/* Many passes in few pixels: no numbers. */
static void svg_without_room_has_no_numbers(void) {
  world w;
  w_over_wan(&w, 1, 0);
  char *svg = draw(&w, GT_PIPE_AUTO, 300, gt_pipe_svg);
  assert_int_equal(count(svg, "<rect "), 4 * 16 * 3);
  assert_int_equal(count(svg, "<text "), 4 + 11);
  gt_free(svg);
}

TESTS(text_by_hand, odd_chunks_are_small, svg_has_a_box_for_each_pass,
      svg_without_room_has_no_numbers)
