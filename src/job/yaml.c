/* Converts YAML text to a tree and back, with libyaml's events.  Rejects YAML features that a job
   file does not need (anchors, several documents, keys that are not words) with their line. */
#include <string.h>
#include <yaml.h>

#include "internal.h"

#define DEPTH_MAX 12

typedef struct {
  yaml_parser_t parser;
  const char *source;
} reader;

static gt_status next(reader *r, yaml_event_t *event) {
  if (yaml_parser_parse(&r->parser, event)) return GT_OK;
  const yaml_parser_t *p = &r->parser;
  const char *problem = p->problem ? p->problem : "it is not YAML";
  if (p->error == YAML_READER_ERROR)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s: is not YAML text: %s at byte %zu; expected UTF-8 without control characters",
        r->source, problem, p->problem_offset);
  return GT_FAIL(GT_ERR_JOB, "%s:%zu: is not YAML: %s%s%s", r->source, p->problem_mark.line + 1,
                 problem, p->context ? " " : "", p->context ? p->context : "");
}

static gt_status read_scalar(reader *r, const yaml_event_t *event, const char *key,
                             job_node **out) {
  const char *text = (const char *)event->data.scalar.value;
  if (gt_control_find(text, event->data.scalar.length) < event->data.scalar.length)
    return GT_FAIL(
        GT_ERR_JOB,
        "%s:%zu: a value has a control character or a line break in it; expected one line of text",
        r->source, event->start_mark.line + 1);
  *out = gt_job_node_new(NODE_SCALAR, key, text);
  (*out)->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  (*out)->line = event->start_mark.line + 1;
  return GT_OK;
}

static gt_status read_node(reader *r, const yaml_event_t *event, const char *key, int depth,
                           job_node **out);

static gt_status read_key(reader *r, const yaml_event_t *event, const job_node *map, char *key,
                          size_t size) {
  size_t line = event->start_mark.line + 1;
  if (event->type != YAML_SCALAR_EVENT)
    return GT_FAIL(GT_ERR_JOB, "%s:%zu: a key is a list or a mapping; expected a word", r->source,
                   line);
  const char *text = (const char *)event->data.scalar.value;
  size_t length = event->data.scalar.length;
  if (length == 0 || length >= size || gt_control_find(text, length) < length)
    return GT_FAIL(GT_ERR_JOB,
                   "%s:%zu: a key is empty, too long or has a control character; expected a word",
                   r->source, line);
  if (gt_job_node_find(map, text, length))
    return GT_FAIL(GT_ERR_JOB, "%s:%zu: key %s is given twice in one place; expected once",
                   r->source, line, text);
  memcpy(key, text, length + 1);
  return GT_OK;
}

/* Reads children up to the event that ends the map or list. */
static gt_status read_children(reader *r, job_node *parent, int depth) {
  yaml_event_type_t end =
      parent->kind == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
  for (;;) {
    yaml_event_t event;
    char key[64] = "";
    GT_TRY(next(r, &event));
    bool ended = event.type == end;
    gt_status status = GT_OK;
    if (!ended && parent->kind == NODE_MAP) {
      status = read_key(r, &event, parent, key, sizeof key);
      yaml_event_delete(&event);
      if (status == GT_OK) status = next(r, &event);
      if (status != GT_OK) return status;
    }
    job_node *child = NULL;
    if (!ended)
      status = read_node(r, &event, parent->kind == NODE_MAP ? key : NULL, depth + 1, &child);
    yaml_event_delete(&event);
    if (ended || status != GT_OK) return status;
    gt_job_node_add(parent, child);
  }
}

static gt_status read_node(reader *r, const yaml_event_t *event, const char *key, int depth,
                           job_node **out) {
  size_t line = event->start_mark.line + 1;
  if (depth > DEPTH_MAX)
    return GT_FAIL(GT_ERR_JOB, "%s:%zu: nested deeper than %d; a job file needs less", r->source,
                   line, DEPTH_MAX);
  if (event->type == YAML_SCALAR_EVENT) return read_scalar(r, event, key, out);
  if (event->type == YAML_ALIAS_EVENT)
    return GT_FAIL(GT_ERR_JOB,
                   "%s:%zu: anchors and aliases are not read in a job file; write the value out",
                   r->source, line);
  job_node *node =
      gt_job_node_new(event->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST, key, NULL);
  gt_status status = read_children(r, node, depth);
  if (status == GT_OK)
    *out = node;
  else
    gt_job_node_close(node);
  return status;
}

/* Reads stream start, one document, stream end. */
static gt_status read_stream(reader *r, job_node **out) {
  job_node *root = NULL;
  for (;;) {
    yaml_event_t event;
    gt_status status = next(r, &event);
    if (status != GT_OK) {
      gt_job_node_close(root);
      return status;
    }
    bool ended = event.type == YAML_STREAM_END_EVENT;
    bool marker = event.type == YAML_STREAM_START_EVENT ||
                  event.type == YAML_DOCUMENT_START_EVENT || event.type == YAML_DOCUMENT_END_EVENT;
    if (!ended && !marker) {
      if (root)
        status = GT_FAIL(GT_ERR_JOB, "%s:%zu: a second document begins; expected one", r->source,
                         event.start_mark.line + 1);
      else
        status = read_node(r, &event, NULL, 0, &root);
    }
    yaml_event_delete(&event);
    if (status != GT_OK) {
      gt_job_node_close(root);
      return status;
    }
    if (ended) break;
  }
  *out = root ? root : gt_job_node_new(NODE_SCALAR, NULL, "");
  return GT_OK;
}

gt_status gt_job_yaml_parse(job_node **out, const char *source, const char *text, size_t size) {
  reader r = {.source = source};
  if (!yaml_parser_initialize(&r.parser))
    return GT_FAIL(GT_ERR_FAULT, "%s: no memory for libyaml", source);
  /* some editors write a byte order mark */
  const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  yaml_parser_set_input_string(&r.parser, (const unsigned char *)text + mark, size - mark);
  yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
  gt_status status = read_stream(&r, out);
  yaml_parser_delete(&r.parser);
  return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct {
  char *text;
  size_t n, capacity;
} sink;

static int sink_write(void *data, unsigned char *buffer, size_t size) {
  sink *s = data;
  if (s->n + size + 1 > s->capacity) {
    size_t capacity = 2 * (s->n + size + 1);
    char *text = gt_alloc(capacity, 1);
    if (s->n) memcpy(text, s->text, s->n);
    gt_free(s->text);
    s->text = text;
    s->capacity = capacity;
  }
  memcpy(s->text + s->n, buffer, size);
  s->n += size;
  s->text[s->n] = '\0';
  return 1;
}

/* True if it is written on one line: a list, or a map below the top level, of only scalars and
   lists of scalars. */
static bool fits_line(const job_node *node) {
  for (size_t i = 0; i < node->n; i++)
    if (node->items[i]->kind == NODE_MAP ||
        (node->items[i]->kind == NODE_LIST && !fits_line(node->items[i])))
      return false;
  return true;
}

static bool emit(yaml_emitter_t *to, yaml_event_t *event, int made) {
  return made && yaml_emitter_emit(to, event);
}

static bool emit_scalar(yaml_emitter_t *to, const char *text) {
  yaml_event_t event;
  job_node as_plain = {.kind = NODE_SCALAR, .text = (char *)text, .plain = true};
  yaml_scalar_style_t style =
      gt_job_node_null(&as_plain) ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE;
  return emit(to, &event,
              yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                           (int)strlen(text), 1, 1, style));
}

/* one_line: for everything below the top level. */
static bool emit_node(yaml_emitter_t *to, const job_node *node, bool top, bool one_line) {
  yaml_event_t event;
  if (node->kind == NODE_SCALAR) return emit_scalar(to, node->text);
  bool flow = !top && (one_line || fits_line(node)), map = node->kind == NODE_MAP;
  int made =
      map ? yaml_mapping_start_event_initialize(
                &event, NULL, NULL, 1, flow ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE)
          : yaml_sequence_start_event_initialize(
                &event, NULL, NULL, 1, flow ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
  bool ok = emit(to, &event, made);
  for (size_t i = 0; ok && i < node->n; i++)
    ok = (!map || emit_scalar(to, node->items[i]->key)) &&
         emit_node(to, node->items[i], false, one_line);
  return ok && emit(to, &event,
                    map ? yaml_mapping_end_event_initialize(&event)
                        : yaml_sequence_end_event_initialize(&event));
}

/* libyaml can only run out of memory here, which ends the process everywhere else; the reader
   rejects an empty text. */
char *gt_job_yaml_emit(const job_node *root, bool one_line) {
  yaml_emitter_t to;
  yaml_event_t event;
  sink s = {0};
  sink_write(&s, (unsigned char *)"", 0);
  if (!yaml_emitter_initialize(&to)) return s.text;
  yaml_emitter_set_output(&to, sink_write, &s);
  yaml_emitter_set_width(&to, -1);
  yaml_emitter_set_unicode(&to, 1);
  bool ok = emit(&to, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING)) &&
            emit(&to, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1)) &&
            emit_node(&to, root, true, one_line) &&
            emit(&to, &event, yaml_document_end_event_initialize(&event, 1)) &&
            emit(&to, &event, yaml_stream_end_event_initialize(&event));
  if (!ok && s.text) s.text[0] = '\0';
  yaml_emitter_delete(&to);
  return s.text;
}
