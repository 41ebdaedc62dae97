#!/bin/bash
# Agents of a fleet on the nodes of a Slurm job, one on each (docs/fleet.md):
#
#   kelvin fleet up kelvin --agents g0,g1,g2,g3 --listen ADDRESS --port 4222     on a host that the nodes reach
#   KELVIN_NATS=tls://ADDRESS:4222 KELVIN_KEYS=DIRECTORY KELVIN_TARGET=postgres://bench@db.example/tpcc sbatch slurm.sh
#   kelvin run tproc-c --target postgres://bench@db.example/tpcc --fleet kelvin --hosts g0,g1,g2,g3
#
# KELVIN_KEYS is the fleet's directory, or a copy of ca.pem and g0.nk to g3.nk, on a file system that the nodes share. The
# password of the database comes from ~/.pgpass of the job's user.
#SBATCH --job-name=kelvin-agent
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@30

set -euo pipefail
: "${KELVIN_NATS:?is the address of the server of NATS}"
: "${KELVIN_KEYS:?is the directory of the keys}"
: "${KELVIN_TARGET:?is the database that the agents may put load on}"
export KELVIN_NATS KELVIN_KEYS KELVIN_TARGET

# An agent that ends must not take the others with it: the controller judges that.
exec srun --kill-on-bad-exit=0 --label bash -c '
  exec kelvin agent --name "g$SLURM_PROCID" --lab kelvin --nats "$KELVIN_NATS" --nats-key "$KELVIN_KEYS/g$SLURM_PROCID.nk" \
    --nats-ca "$KELVIN_KEYS/ca.pem" --allow-target "$KELVIN_TARGET"
'
