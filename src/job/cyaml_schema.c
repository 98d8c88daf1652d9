/* The libcyaml schema, made from the table of keys, and the typed load through it. */
#include <cyaml/cyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

/* What the schema is made of; freed together. */
typedef struct {
  void *parts[4 * JOB_KEYS_MAX]; /* a row adds a map or two at most, each a key and its fields */
  size_t n;
} maker;

static const cyaml_schema_value_t integer_entry = {CYAML_VALUE_INT(CYAML_FLAG_DEFAULT, int64_t)};
static const cyaml_schema_value_t real_entry = {CYAML_VALUE_FLOAT(CYAML_FLAG_DEFAULT, double)};
static const cyaml_schema_value_t text_entry = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};

static void *keep(maker *m, void *part) {
  if (m->n == sizeof m->parts / sizeof *m->parts) gt_bug("the schema of the job has more than %zu parts", m->n);
  m->parts[m->n++] = part;
  return part;
}

static void maker_close(maker *m) {
  while (m->n) gt_free(m->parts[--m->n]);
}

static cyaml_schema_field_t *make_fields(maker *m, const char *prefix);

static void make_list(maker *m, const job_key *row, cyaml_schema_field_t *field) {
  field->count_offset = (uint32_t)row->count_offset;
  field->count_size = sizeof(size_t);
  field->value.type = CYAML_SEQUENCE;
  field->value.flags = CYAML_FLAG_POINTER;
  field->value.sequence.min = 0;
  field->value.sequence.max = CYAML_UNLIMITED;
  if (row->type != KEY_MAPS) {
    const cyaml_schema_value_t *entry = row->type == KEY_INTS ? &integer_entry : row->type == KEY_REALS ? &real_entry : &text_entry;
    field->value.data_size = row->type == KEY_INTS ? sizeof(int64_t) : row->type == KEY_REALS ? sizeof(double) : sizeof(char *);
    field->value.sequence.entry = entry;
    return;
  }
  char prefix[JOB_PATH_MAX];
  snprintf(prefix, sizeof prefix, "%s[].", row->path);
  cyaml_schema_value_t *entry = keep(m, GT_NEW(cyaml_schema_value_t));
  entry->type = CYAML_MAPPING;
  entry->data_size = (uint32_t)row->item_size;
  entry->mapping.fields = make_fields(m, prefix);
  field->value.data_size = (uint32_t)row->item_size;
  field->value.sequence.entry = entry;
}

static void make_scalar(cyaml_schema_value_t *value, cyaml_type_e type, size_t size) {
  value->type = type;
  value->data_size = (uint32_t)size;
}

static void make_leaf(maker *m, const job_key *row, cyaml_schema_field_t *field) {
  cyaml_schema_value_t *value = &field->value;
  field->data_offset = (uint32_t)row->offset;
  switch (row->type) {
  case KEY_INT:
    make_scalar(value, CYAML_INT, sizeof(int));
    break;
  case KEY_I64:
    make_scalar(value, CYAML_INT, sizeof(int64_t));
    break;
  case KEY_U64:
    make_scalar(value, CYAML_UINT, sizeof(uint64_t));
    break;
  case KEY_BOOL:
    make_scalar(value, CYAML_BOOL, sizeof(bool));
    break;
  case KEY_REAL:
  case KEY_TIME:
  case KEY_RATE:
  case KEY_SIZE:
  case KEY_SPEED:
    make_scalar(value, CYAML_FLOAT, sizeof(double));
    break;
  case KEY_STRING:
  case KEY_CHOICE:
    *value = text_entry;
    break;
  case KEY_PAIR:
    make_scalar(value, CYAML_SEQUENCE_FIXED, sizeof(char *));
    value->sequence.entry = &text_entry;
    value->sequence.min = value->sequence.max = 2;
    break;
  case KEY_INTS:
  case KEY_REALS:
  case KEY_STRINGS:
  case KEY_MAPS:
    make_list(m, row, field);
    break;
  }
  value->flags = (enum cyaml_flag)(value->flags | CYAML_FLAG_OPTIONAL);
}

/* The fields of a map.  A map inside it takes no room of its own: offsets in the table count from the enclosing struct. */
static cyaml_schema_field_t *make_fields(maker *m, const char *prefix) {
  size_t n = 0, skip = strlen(prefix);
  cyaml_schema_field_t *fields = keep(m, GT_NEW_ARRAY(cyaml_schema_field_t, gt_job_nkeys + 1));
  for (size_t i = 0; i < gt_job_nkeys; i++) {
    const job_key *row = &gt_job_keys[i];
    if (strncmp(row->path, prefix, skip) != 0) continue;
    const char *rest = row->path + skip;
    size_t length = strcspn(rest, ".[");
    if (rest[length] == '\0') {
      fields[n].key = rest;
      make_leaf(m, row, &fields[n++]);
    } else if (rest[length] == '.') {
      if (n && strncmp(fields[n - 1].key, rest, length) == 0 && fields[n - 1].key[length] == '\0') continue;
      char *key = keep(m, GT_NEW_ARRAY(char, JOB_PATH_MAX)), below[JOB_PATH_MAX];
      memcpy(key, rest, length);
      snprintf(below, sizeof below, "%.*s.", (int)(skip + length), row->path);
      fields[n].key = key;
      fields[n].value.type = CYAML_MAPPING;
      fields[n].value.flags = CYAML_FLAG_OPTIONAL;
      fields[n].value.data_size = sizeof(gt_job);
      fields[n++].value.mapping.fields = make_fields(m, below);
    }
  }
  return fields;
}

static cyaml_schema_value_t make_schema(maker *m) {
  cyaml_schema_value_t top = {.type = CYAML_MAPPING, .flags = CYAML_FLAG_POINTER, .data_size = sizeof(gt_job)};
  top.mapping.fields = make_fields(m, "");
  return top;
}

/* ---- libcyaml's memory and log ------------------------------------------------------------------------------------ */

/* libcyaml wants realloc, and calls it for every entry of a list; gt_alloc has none.  So each block has its size and the room for it in front, at a distance
   that keeps the alignment, and grows by half of itself at least. */
#define HEAD ((size_t)64)

typedef struct {
  size_t size, room;
} block_head;

static void *resize(void *context, void *memory, size_t size) {
  (void)context;
  char *old = memory ? (char *)memory - HEAD : NULL, *fresh = NULL;
  block_head had = {0};
  if (old) memcpy(&had, old, sizeof had);
  if (size) {
    bool fits = old && size <= had.room;
    block_head now = {size, fits ? had.room : old ? size + had.room / 2 : size};
    fresh = fits ? old : gt_alloc(1, HEAD + now.room);
    if (old && !fits) memcpy(fresh + HEAD, memory, had.size);
    memcpy(fresh, &now, sizeof now);
  }
  if (old != fresh) gt_free(old);
  return fresh ? fresh + HEAD : NULL;
}

/* The first message says what was wrong; those after it say from where. */
static void listen(cyaml_log_t level, void *context, const char *format, va_list arguments) {
  (void)level;
  char *text = context;
  if (*text == '\0') vsnprintf(text, 256, format, arguments);
  text[strcspn(text, "\n")] = '\0';
}

gt_status gt_job_typed(gt_job **out, const job_node *root) {
  maker m = {.n = 0};
  char said[256] = "";
  cyaml_config_t config = {.log_fn = listen, .log_ctx = said, .mem_fn = resize, .log_level = CYAML_LOG_ERROR};
  cyaml_schema_value_t schema = make_schema(&m);
  char *text = gt_job_yaml_emit(root);
  cyaml_data_t *data = NULL;
  cyaml_err_t error = cyaml_load_data((const uint8_t *)text, strlen(text), &config, &schema, &data, NULL);
  gt_free(text);
  maker_close(&m);
  if (error != CYAML_OK) return GT_FAIL(GT_ERR_FAULT, "libcyaml refused a job that was checked: %s (%s)", cyaml_strerror(error), said);
  *out = data;
  return GT_OK;
}

void gt_job_close(gt_job *job) {
  if (!job) return;
  maker m = {.n = 0};
  cyaml_config_t config = {.mem_fn = resize, .log_level = CYAML_LOG_ERROR};
  cyaml_schema_value_t schema = make_schema(&m);
  cyaml_free(&config, &schema, job, 0);
  maker_close(&m);
}
