/* poison RUN ROUND REGION ITEM VALUE: rewrites the file of a round with VALUE ("nan", 3e38) in
   every element of a float32 item, and a valid seal. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "geotrain/ckpt.h"

static int fail(void) {
  fprintf(stderr, "poison: %s\n", gt_error_text());
  return 1;
}

int main(int argc, char **argv) {
  char path[4096];
  gt_ckpt_info info;
  gt_state state;
  gt_ckpt_writer *writer;
  gt_status status = GT_OK;
  if (argc != 6) return 2;
  if (gt_ckpt_read(gt_ckpt_path(path, sizeof path, argv[1], atoll(argv[2]), argv[3]), &info,
                   &state) != GT_OK)
    return fail();
  const gt_state_item *item = gt_state_find(&state, "", argv[4]);
  if (!item || item->type != GT_TYPE_F32) return 3;
  for (size_t i = 0; i < item->count; i++) ((float *)item->data)[i] = strtof(argv[5], NULL);
  if (gt_ckpt_writer_create(&writer, argv[1], argv[3]) != GT_OK ||
      gt_ckpt_write(writer, &info, &state) != GT_OK)
    return fail();
  while (gt_ckpt_poll(writer, &status) != GT_CKPT_DONE) usleep(1000);
  gt_ckpt_writer_close(writer);
  gt_state_close(&state);
  gt_ckpt_info_close(&info);
  return status == GT_OK ? 0 : fail();
}
