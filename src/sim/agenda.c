/* The agenda: a binary heap of the regions by their next event. */

#include "internal.h"

void gt_sim_agenda_open(sim_agenda *agenda, size_t n) {
  *agenda = (sim_agenda){.at = GT_NEW_ARRAY(gt_ns, n),
                         .order = GT_NEW_ARRAY(uint32_t, n),
                         .place = GT_NEW_ARRAY(uint32_t, n),
                         .n = n};
  for (size_t i = 0; i < n; i++) {
    agenda->at[i] = GT_NEVER;
    agenda->order[i] = agenda->place[i] = (uint32_t)i;
  }
}

void gt_sim_agenda_close(sim_agenda *agenda) {
  gt_free(agenda->at);
  gt_free(agenda->order);
  gt_free(agenda->place);
}

static bool sooner(const sim_agenda *agenda, uint32_t a, uint32_t b) {
  return agenda->at[a] < agenda->at[b] || (agenda->at[a] == agenda->at[b] && a < b);
}

static void put(sim_agenda *agenda, size_t place, uint32_t region) {
  agenda->order[place] = region;
  agenda->place[region] = (uint32_t)place;
}

void gt_sim_agenda_set(sim_agenda *agenda, size_t region, gt_ns at) {
  uint32_t moved = (uint32_t)region;
  size_t i = agenda->place[region];
  agenda->at[region] = at;
  for (size_t up; i > 0; i = up) {
    up = (i - 1) / 2;
    if (!sooner(agenda, moved, agenda->order[up])) break;
    put(agenda, i, agenda->order[up]);
  }
  for (size_t down; (down = 2 * i + 1) < agenda->n; i = down) {
    if (down + 1 < agenda->n && sooner(agenda, agenda->order[down + 1], agenda->order[down]))
      down++;
    if (!sooner(agenda, agenda->order[down], moved)) break;
    put(agenda, i, agenda->order[down]);
  }
  put(agenda, i, moved);
}
