/* A table as text of 80 columns, CSV and JSON: formats, units, columns without values, long texts,
   tables that are too wide. */
#include <jansson.h>

#include "geotrain/record_table.h"
#include "tests.h"
#include "internal.h"

static const gt_column columns[] = {
    {.key = "name", .title = "region"},
    {.key = "step_s", .title = "step", .unit = "ms", .format = GT_COLUMN_DIGITS, .digits = 4},
    {.key = "bytes", .title = "sent", .unit = "MB", .format = GT_COLUMN_FIXED, .digits = 2},
    {.key = "share", .title = "waits", .unit = "%", .format = GT_COLUMN_FIXED, .digits = 1},
    {.key = "steps", .title = "steps", .format = GT_COLUMN_WHOLE},
    {.key = "chosen", .title = "chosen", .format = GT_COLUMN_WHOLE},
    {.key = "secret"},
    {.title = "devices"},
};
#define COLUMNS COUNT(columns)

/* What print writes; the caller frees it. */
static char *written(void (*print)(FILE *to, const gt_table *table), const gt_table *table) {
  char *text;
  FILE *to = open_text(&text);
  print(to, table);
  fclose(to);
  return text;
}

static gt_table *filled(void) {
  gt_table *t = gt_table_create(columns, COLUMNS);
  gt_table_add(t, GT_ROW(gt_cell_text("east"), gt_cell_number(0.0123456), gt_cell_number(1e6),
                         gt_cell_number(0.5), gt_cell_whole(3), gt_cell_flag(true),
                         gt_cell_number(0.1), gt_cell_text("2 of 4 v100")));
  gt_table_add(t, GT_ROW(gt_cell_text("we,st"), gt_cell_number(12.5), {0}, gt_cell_number(NAN),
                         gt_cell_whole(12345678), gt_cell_flag(false)));
  gt_table_note(t, "not possible: %d", 7);
  return t;
}

static void text(void) {
  gt_table *t = filled();
  char *out = written(gt_table_print, t);
  assert_string_equal(out, "region   step  sent  waits   steps  chosen  devices\n"
                           "           ms    MB      %\n"
                           "east    12.35  1.00   50.0       3     yes  2 of 4 v100\n"
                           "we,st   12500     -      -  12.3 M          -\n"
                           "  not possible: 7\n");
  free(out);
  gt_table_close(t);
}

static void csv(void) {
  gt_table *t = filled();
  char *out = written(gt_table_csv, t);
  assert_string_equal(out, "name,step_s,bytes,share,steps,chosen,secret\n"
                           "east,0.0123456,1000000,0.5,3,true,0.1\n"
                           "\"we,st\",12.5,,,12345678,false,\n");
  free(out);
  gt_table_close(t);
}

/* A number that is not finite is null; no cell, no key. */
static void json(void) {
  gt_table *t = filled();
  json_t *list = gt_table_json(t);
  char *out = json_dumps(list, JSON_COMPACT | JSON_REAL_PRECISION(15));
  assert_string_equal(out, "[{\"name\":\"east\",\"step_s\":0.0123456,\"bytes\":1000000.0,"
                           "\"share\":0.5,\"steps\":3,\"chosen\":true,\"secret\":0.1},"
                           "{\"name\":\"we,st\",\"step_s\":12.5,\"share\":null,"
                           "\"steps\":12345678,\"chosen\":false}]");
  free(out);
  json_decref(list);
  gt_table_close(t);
}

/* A column without values is left out; the last one, a text, is broken into lines. */
static void empty_and_long(void) {
  gt_table *t = gt_table_create(columns, COLUMNS);
  char words[200] = "";
  for (int i = 0; i < 20; i++) strcat(words, "eight888 ");
  gt_table_add(t, GT_ROW([0] = gt_cell_text("east"), [4] = gt_cell_whole(1),
                         [5] = gt_cell_flag(false), [7] = gt_cell_text(words)));
  char *out = written(gt_table_print, t);
  assert_string_equal(
      out, "region  steps  devices\n"
           "east        1  eight888 eight888 eight888 eight888 eight888 eight888 eight888\n"
           "               eight888 eight888 eight888 eight888 eight888 eight888 eight888\n"
           "               eight888 eight888 eight888 eight888 eight888 eight888\n");
  free(out);
  gt_table_close(t);
}

/* Columns that do not fit follow with the first one; a bit less, and they move closer. */
static void wide(void) {
  gt_column many[12] = {{.title = "region"}};
  gt_cell row[12] = {gt_cell_text("east")};
  for (size_t c = 1; c < 12; c++) {
    many[c] = (gt_column){.title = "quantity", .unit = "ms", .format = GT_COLUMN_WHOLE};
    row[c] = gt_cell_whole((int64_t)c);
  }
  gt_table *t = gt_table_create(many, 12);
  gt_table_add(t, row, 12);
  char *out = written(gt_table_print, t);
  const char *second = strstr(out, "\n\nregion  quantity");
  assert_non_null(second);
  for (const char *line = out; *line; line = strchr(line, '\n') + 1)
    assert_true(strchr(line, '\n') - line <= 80);
  assert_string_equal(second + 2, "region  quantity  quantity  quantity  quantity\n"
                                  "              ms        ms        ms        ms\n"
                                  "east           8         9        10        11\n");
  free(out);
  gt_table_close(t);
  t = gt_table_create(many, 9);
  gt_table_add(t, row, 9);
  out = written(gt_table_print, t);
  must_contain(out, "east          1        2 ");
  assert_null(strstr(out, "\n\n"));
  free(out);
  gt_table_close(t);
}

TESTS(text, csv, json, empty_and_long, wide)
