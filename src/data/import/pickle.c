/* Reads a pickle opcode by opcode. */
#include "pickle_machine.h"

static gt_status refuse(const gt_pickle_reader *r, uint8_t byte) {
  if (!r->opcode)
    return GT_FAIL(GT_ERR_DATA,
                   "%s: byte %llu is 0x%02x, which is no opcode; the pickle is damaged",
                   gt_bytes_path(r->file), (unsigned long long)r->opcode_at, byte);
  return GT_FAIL(
      GT_ERR_DATA,
      "%s: opcode %s at byte %llu is refused; pickles of lists, tuples and whole numbers "
      "are read, and nothing in them is executed",
      gt_bytes_path(r->file), r->opcode, (unsigned long long)r->opcode_at);
}

static gt_status step(gt_pickle_reader *r) {
  uint8_t byte = 0;
  r->opcode_at = r->at;
  GT_TRY(gt_pickle_take(r, &byte));
  r->opcode = gt_pickle_opcodes[byte].name;
  return gt_pickle_opcodes[byte].run ? gt_pickle_opcodes[byte].run(r) : refuse(r, byte);
}

bool gt_pickle_begins(uint8_t byte) {
  return byte == 0x80 || byte == '(' || byte == ')' || byte == ']';
}

gt_status gt_pickle_read(gt_pickle **out, gt_bytes *file) {
  gt_pickle_reader *r = GT_NEW(gt_pickle_reader);
  r->file = file;
  r->made = GT_NEW(gt_pickle);
  gt_status status = GT_OK;
  while (status == GT_OK && !r->stopped) status = step(r);
  if (status == GT_OK) status = gt_pickle_expect_end(r);
  *out = status == GT_OK ? r->made : NULL;
  if (status != GT_OK) gt_pickle_close(r->made);
  gt_free(r->memo);
  gt_free(r->stack);
  gt_free(r);
  return status;
}

void gt_pickle_close(gt_pickle *p) {
  if (!p) return;
  gt_free(p->pool);
  gt_free(p->lists);
  gt_free(p);
}

gt_pickle_value gt_pickle_top(const gt_pickle *p) {
  return p->top;
}

gt_pickle_list gt_pickle_list_of(const gt_pickle *p, gt_pickle_value value) {
  const gt_pickle_place *l = &p->lists[-1 - value];
  return (gt_pickle_list){.values = l->n ? p->pool + l->start : NULL,
                          .n = l->n,
                          .tuple = l->tuple,
                          .offset = l->offset};
}
