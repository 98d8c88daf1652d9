/* Private to setup: the steps of gt_setup_open in their own files. */
#pragma once

#include "geotrain/setup.h"

/* fetch.c: makes copies of data sets that the job names by URL.  Collective over the world; errors
   as gt_fetch_step. */
gt_status gt_setup_fetch_data(gt_run *run);

/* data.c: opens the region's data set, and settles which of its samples belong to the region and
   how images are normalised.  Collective over the world; GT_ERR_DATA and GT_ERR_JOB name the region
   and its values. */
gt_status gt_setup_open_data(gt_run *run);

/* choices.c: settles how products are computed, before the model is built.  Collective over the
   world; GT_ERR_JOB: train.choices. */
gt_status gt_setup_open_choices(gt_run *run, const gt_graph_spec *spec);
/* Returns the text of every region's choices, empty if by rule.  Collective over the PS ranks; the
   caller frees the texts and the list.  In a region that only aggregates, sets run->choices_how to
   that of the others. */
char **gt_setup_gather_choices(gt_run *run);

/* pipeline.c.  Opens the job's pipeline, if any; model: the spec of the whole model. Local; errors
   as gt_pipe_job_open. */
gt_status gt_setup_open_pipeline(gt_run *run, const gt_graph_spec *model);
/* Builds the graph of this rank's part of the model. */
gt_status gt_setup_open_part(gt_run *run, gt_graph_spec spec);
void gt_setup_close_pipeline(gt_run_pipe *pipe); /* NULL is allowed */

/* machine.c: settles the instruction set, before kernels are used.  Collective over the world. */
gt_status gt_setup_open_machine(gt_run *run);
/* Settles run->precision: bf16 if the job asks for it and this rank supports it; a worker without
   support logs why.  Collective over the region. */
void gt_setup_open_precision(gt_run *run, const gt_kernels *kernels);
/* Call after the model is built: stores how every region's workers compute in run->builds; logs
   differences once.  Collective over the world. */
void gt_setup_gather_builds(gt_run *run);

/* As gt_setup_check_data, for what ids and columns mean only. */
gt_status gt_setup_check_ids(const gt_run *run, const gt_state *state);
/* init.c: reads train.init into the run's graph.  An error is only a warning if the run resumes
   from a checkpoint.  Local; GT_ERR_CKPT. */
gt_status gt_setup_init_params(gt_run *run);

/* endpoint.c: opens the port and the certificates of the region's PS, with wan.transport tcp.
   Local; errors as gt_tcp_open. */
gt_status gt_setup_open_endpoint(gt_run *run);
/* Returns the error of a job that cannot run as one MPI job per region. */
gt_status gt_setup_not_apart(void);
/* Draws a number that no other run has, for the connections of gateways over TCP.  Collective over
   the PS ranks. */
void gt_setup_draw_run(const gt_run *run);
/* Lets a training begin without all regions, if the job allows it and this region has no
   checkpoint.  Call on a PS with an endpoint.  Local. */
void gt_setup_let_begin(gt_run *run);
/* Finds the regions without which it begins, once regions have met.  Collective over the world. */
void gt_setup_settle_late(gt_run *run);
/* GT_ERR_JOB: the job can be planned, and not trained as it was started. */
gt_status gt_setup_may_train(const gt_run *run);
