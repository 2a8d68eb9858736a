#!/usr/bin/env bash
# A private SLURM on 127.0.0.1 for tests: one controller, several nodes with fake GPUs.
#
#   testing/slurm.sh start DIR NODES [PORT]    then SLURM_CONF=DIR/slurm.conf sinfo
#   testing/slurm.sh node DIR NAME             start one node again
#   testing/slurm.sh stop DIR
#
# Needs root, and the packages slurmctld, slurmd, slurm-client and munge. Nothing outside DIR is
# touched.
set -euo pipefail
action=$1 dir=$2
export SLURM_CONF=$dir/slurm.conf

start() {
  local nodes=$1 port=$2 host
  host=$(hostname -s)
  mkdir -p "$dir"/{state,spool,log,run,munge,dev}
  chmod 755 "$dir"
  for gpu in 0 1 2 3; do
    [ -e "$dir/dev/gpu$gpu" ] || mknod "$dir/dev/gpu$gpu" c 1 3
  done
  head -c 128 /dev/urandom > "$dir/munge/key"
  chown -R munge:munge "$dir/munge"
  chmod 400 "$dir/munge/key"
  setpriv --reuid munge --regid munge --clear-groups munged --force -S "$dir/munge/socket" \
    --key-file="$dir/munge/key" --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" \
    --seed-file="$dir/munge/seed"
  {
    cat <<END
ClusterName=karve
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SlurmctldTimeout=30
SlurmdTimeout=20
InactiveLimit=0
KillWait=2
Waittime=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
END
    for node in $(seq "$nodes"); do
      echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 100 + node))" \
        "CPUs=2 RealMemory=2000 Gres=gpu:fake:4 State=UNKNOWN"
    done
    echo "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1"
    echo "PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10"
  } > "$dir/slurm.conf"
  echo "NodeName=n[1-$nodes] Name=gpu Type=fake File=$dir/dev/gpu[0-3]" > "$dir/gres.conf"
  printf '%s\n' CgroupPlugin=cgroup/v1 CgroupAutomount=no > "$dir/cgroup.conf"
  slurmctld
  for node in $(seq "$nodes"); do
    node "n$node"
  done
  for _ in $(seq 100); do
    [ "$(sinfo -h -t idle -o %D 2> "$dir/log/sinfo" | head -1)" = "$nodes" ] && return
    sleep 0.1
  done
  sinfo
  return 1
}

node() {
  mkdir -p "$dir/spool/$1"
  slurmd -N "$1"
}

stop() {
  for file in "$dir"/run/*.pid "$dir/munge/pid"; do
    [ -f "$file" ] && kill "$(cat "$file")" 2> "$dir/log/stop" || true
  done
}

case $action in
  start) start "$3" "${4:-16817}" ;;
  node) node "$3" ;;
  stop) stop ;;
esac
