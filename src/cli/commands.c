/* The commands that exist, in the order `geotrain help` lists them. */
#include <stddef.h>

#include "cli.h"

const gt_command gt_commands[] = {
    {"train", "train a model over regions (under mpirun or srun)", gt_cmd_train, true,
     "geotrain train JOB.yaml [--run-dir DIR] [--set key=value]... [--resume[=DIR|auto]] [--clock real|virtual] [--progress WHICH]\n"
     "\n"
     "Run it under mpirun or srun with as many ranks as the job's regions have in all:\n"
     "    mpirun -n 4 geotrain train jobs/quickstart.yaml --run-dir runs/first\n"
     "\n"
     "  --run-dir DIR         where job.yaml, records, summary.json and checkpoints go\n"
     "  --set key=value       overrides a key of the job, for instance sync.period=4 (`geotrain help job` lists keys)\n"
     "  --resume[=DIR|auto]   goes on from the newest checkpoint round that is whole in every region\n"
     "  --clock WHICH         real: wall time; virtual: what the job's compute and links say, the same in every run (docs/virtual-clock.md)\n"
     "  --progress WHICH      auto (a live line on a terminal, lines in a log), line, log, none\n"
     "\n"
     "SIGUSR1 to mpirun or to any rank: finish the step, write a checkpoint, exit 75.\n"
     "GEOTRAIN_REGION in a rank's environment names its region; GEOTRAIN_LOCAL_PLANE=messages does without shared memory in a region.\n"},
    {"probe", "measure links, devices and disk for a job: go or no-go (under mpirun or srun)", gt_cmd_probe, true,
     "geotrain probe JOB.yaml [--set key=value]... [--run-dir DIR] [--out PROFILE.yaml] [--sustained] [--link-limit TIME]\n"
     "\n"
     "Run it as train would be run, with the same ranks on the same hosts:\n"
     "    mpirun -n 4 geotrain probe jobs/quickstart.yaml\n"
     "\n"
     "  --set key=value       overrides a key of the job; wan.emulate=false measures the real links, true the emulated ones\n"
     "  --run-dir DIR         where checkpoints would go; not given: what train takes without it.  A file of a checkpoint's size is written and "
     "removed\n"
     "  --out PROFILE.yaml    where the figures go, for `--set profile=PROFILE.yaml`; not given: profile.yaml in the current directory\n"
     "  --sustained           also sends what one exchange of the job's model would, on all links at once, however long that takes: what TCP keeps "
     "up for long\n"
     "  --link-limit TIME     a link on which nothing passes for so long is blocked; not given: 10 s\n"
     "\n"
     "The last lines are warnings, then GO (exit 0), or NO-GO (exit 7) with every reason on a line of its own: a blocked link, a checkpoint "
     "directory that\n"
     "cannot be written, data that cannot be opened, ranks that do not fit the job's regions.\n"},
    {"watch", "the live line of runs, from their files: waiting, running, requeued, done", gt_cmd_watch, true,
     "geotrain watch RUN-DIR... [--once] [--progress WHICH]\n"
     "\n"
     "Run it plainly, on any host that sees the run directory: a login node while the job waits, runs or is requeued.  A line a run; a directory\n"
     "whose subdirectories are runs (a sweep) stands for them all.  It ends with the runs, with the table that train prints.\n"
     "\n"
     "  --once                says where each run stands and ends; it waits up to 8 s for squeue\n"
     "  --progress WHICH      auto (lines drawn in place on a terminal, else a log), line, log (a line a change, and every log.every of the run)\n"
     "\n"
     "RUN-DIR/slurm-jobs names the Slurm jobs that were submitted for the run: where squeue is in PATH it is asked for them, every 5 s, for all "
     "runs\n"
     "at once.  Without it (or for a run under mpirun) only the files speak: a run whose record stays silent has `no sign of life`, and the\n"
     "watching goes on, for nobody can tell from here whether it ended.\n"
     "\n"
     "Exit codes: 0 every run is done; 75 a run stopped with a checkpoint and its job has left the queue: submit it again; 5 a job has left the "
     "queue\n"
     "without a summary; 6 a limit ended a run; 2 there is no such run; the worst of several.  With --once: the same of runs that have ended, else "
     "0.\n"
     "Ctrl-C ends the watching only, by the signal (130 in a shell).\n"},
    {"simulate", "the times, waits and bytes of a job, without training it", gt_cmd_simulate, false,
     "geotrain simulate JOB.yaml [--regions-csv FILE] [--set key=value]... [--out DIR]\n"
     "\n"
     "Run it plainly.  One process drives the parameter servers, strategies and links of all regions through the whole job, as\n"
     "`train --clock virtual` would and with the same times, messages and bytes; nothing is computed, so that a thousand regions are a matter of "
     "seconds.\n"
     "What work costs must be in the job: `compute`, or the profile that `geotrain probe` wrote.\n"
     "\n"
     "  --regions-csv FILE  regions, a line each: name,ranks and, of samples,place,step,samples_per_s,speed,access,price,ps_price, what there is, "
     "in\n"
     "                      place of the job's; wan.default is then the link of all\n"
     "  --set key=value     overrides a key of the job\n"
     "  --out DIR           also writes DIR/summary.json, as train does\n"},
    {"plan", "ranks, strategy, time, bytes and cost of a job, before it is submitted", gt_cmd_plan, false,
     "geotrain plan JOB.yaml [--set key=value]... [--regions-csv FILE] [--margin SHARE] [--write OUT.yaml] [--json]\n"
     "\n"
     "Run it plainly.  Candidates are plan.strategies x plan.periods (not given: the job's own).  For each, regions with devices get the cheapest "
     "set of\n"
     "them that is as fast as everything everywhere (with plan.deadline: that is in time; with plan.budget: the fastest that is within it), by "
     "elastic\n"
     "scheduling; every figure comes from simulations of the job with that set.  The others keep their ranks (docs/planning.md).\n"
     "\n"
     "  --set key=value     overrides a key of the job, as in plan.deadline=2h, plan.budget=12, plan.strategies=[asgd-ga,sma], plan.periods=[4,8]\n"
     "  --regions-csv FILE  regions, a line each, in place of the job's; as for simulate\n"
     "  --margin SHARE      low and high: computing and links are so much faster and slower; not given: 0.1\n"
     "  --write OUT.yaml    the job with the plan filled in: strategy, period, ranks, devices, limits.wan_bytes, slurm.time, plan.predicted\n"
     "  --json              everything, as one object\n"
     "\n"
     "Prices: of a device its own, else regions[].price, else the catalogue's by regions[].place; of the server regions[].ps_price, else the "
     "catalogue's.\n"
     "Exit 2: deadline or budget cannot be kept, a price is missing for a budget, a region has no device.\n"},
    {"data", "make data sets: import, synth, info", gt_cmd_data, false,
     "geotrain data import FORMAT SOURCE OUT.h5\n"
     "geotrain data synth OUT.h5 [--train N] [--test N] [--classes N] [--seed N]\n"
     "geotrain data info FILE.h5\n"
     "\n"
     "  import   reads the files in the folder SOURCE, gzip or plain, into one HDF5 file; FORMAT: mnist (four idx files), cifar (CIFAR-10 and 100,\n"
     "           binary), libfm (NAME.train.libfm and NAME.test.libfm)\n"
     "  synth    makes a small, learnable, deterministic data set\n"
     "  info     says what is in a data set\n"},
    {"eval", "loss, accuracy and (two classes) AUC of a checkpoint", gt_cmd_eval, false,
     "geotrain eval CHECKPOINT DATA.h5\n"
     "\n"
     "CHECKPOINT is a region's file of a round: RUN_DIR/ckpt/<round>/<region>.h5.\n"},
    {"export", "a checkpoint's model as safetensors, with PyTorch's names and layouts", gt_cmd_export, false,
     "geotrain export CHECKPOINT OUT.safetensors\n"
     "\n"
     "CHECKPOINT is a region's file of a round: RUN_DIR/ckpt/<round>/<region>.h5.  Parameters and buffers are named and laid out as in PyTorch\n"
     "(convolutions K,C,R,S; linear layers behind images read C,H,W), so that load_state_dict of the same model takes them; the file says the\n"
     "model, job, region, round, step and version.  OUT is replaced if it is there.\n"
     "\n"
     "Exit 3: OUT cannot be written; 4: the checkpoint is damaged or another version's.\n"},
    {"info", "what this build and this machine have; info JOB.yaml: the resolved job", gt_cmd_info, false,
     "geotrain info [JOB.yaml [--flat | --measure [--out FILE]] [--set key=value]...]\n"
     "\n"
     "Prints version, compiler, kernels, the core OpenBLAS picked, CPU, instruction set, models (size, kernels, source), strategies and\n"
     "optimizers; of a job file: the resolved job, every key with its value.\n"
     "\n"
     "Environment: GEOTRAIN_ISA=avx512|avx2|plain holds this and every other command, on every rank, to a lower instruction set than the\n"
     "CPU has; OpenBLAS and oneDNN, too.\n"
     "\n"
     "  --flat      for scripts: a line a value, path=value, entries of lists by number (regions.0.name=eu); seconds, bit/s and bytes without unit\n"
     "  --measure   times the ways in which each product of the model can be computed here, at the job's batch, and prints the choices\n"
     "  --out FILE  writes them to FILE, which train.choices names where a run must repeat to the bit\n"},
    {"placement", "where to aggregate: time and cost of a mini-batch by place and vendor", gt_cmd_placement, false,
     "geotrain placement --model-bytes SIZE [options]\n"
     "\n"
     "Workers on machines write gradients to object storage, a function adds them and writes the model, workers poll for it.  Every aggregator "
     "place,\n"
     "function vendor, storage vendor and cloud of workers: seconds and USD of a mini-batch, by phase and by term (docs/planning-cost.md).\n"
     "\n"
     "  --model-bytes SIZE         of a gradient and of the model: 17MB\n"
     "  --workers-at PLACE,...     not given: london,mumbai,oregon,sydney; --workers-each N of them at each, not given: 1\n"
     "  --places PLACE,...         where function and storage may be; not given: where the workers are\n"
     "  --clouds CLOUD,...         of the workers; not given: aws,azure,gcp\n"
     "  --functions, --storage CLOUD,...  not given: aws,gcp\n"
     "  --hierarchy                also with an aggregator at every place of workers, and one above them\n"
     "  --batches N                of the run: tiers of prices see them all; not given: 100\n"
     "  --train-time TIME          of a mini-batch; not given: 1 s (assumed)\n"
     "  --catalogue FILE|FOLDER    CSV files of rates; not given: those that geotrain comes with; again: its rates take the place of those before\n"
     "  --network FILE             the same, for links of your own\n"
     "  --poll TIME                between a worker's requests for the model; not given: 1 s.  --start TIME of a function: 100 ms\n"
     "  --memory-gb X              of a function; not given: 1.  --add-s-per-gb X: its own work on what it has read: 1\n"
     "  --setup-rtts X             round trips before a new connection carries data: 2.  --window SIZE: what leaves in its first round trip: 14480B\n"
     "  --csv FILE, --plot FILE.png  every term; a plot (by gnuplot)\n"},
    {"help", "this list; help COMMAND; help job: every key of a job file", gt_cmd_help, false,
     "geotrain help\n"
     "geotrain help COMMAND\n"
     "geotrain help job\n"},
    {NULL, NULL, NULL, false, NULL},
};
