#!/usr/bin/env bash
# A private sshd on 127.0.0.1 for tests, with keys of its own.
#
#   testing/sshd.sh DIR PORT     start it; ssh -F DIR/ssh_config far1 reaches it, and far2, far3, …
#
# It ends with the process in DIR/sshd.pid. Nothing outside DIR is touched but /run/sshd.
set -euo pipefail
dir=$1 port=$2
mkdir -p "$dir" /run/sshd
for key in host user; do
  [ -f "$dir/$key" ] || ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"
done
cp "$dir/user.pub" "$dir/authorized_keys"
cat > "$dir/sshd_config" <<END
ListenAddress 127.0.0.1
Port $port
HostKey $dir/host
AuthorizedKeysFile $dir/authorized_keys
PidFile $dir/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
END
cat > "$dir/ssh_config" <<END
Host far*
  HostName 127.0.0.1
  Port $port
  IdentityFile $dir/user
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile $dir/known_hosts
  LogLevel ERROR
END
/usr/sbin/sshd -f "$dir/sshd_config" -E "$dir/sshd.log"
