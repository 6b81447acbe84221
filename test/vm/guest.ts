/** Modules that are loaded before the command runs. */
const MODULES = ['ip_vs'];

/**
 * The first process, from memory: it makes the host's files visible, under a layer of memory that takes what is written, and hands over to the job. The
 * program is busybox, as every other program first comes through 9p, which is slow under emulation.
 */
export const INIT = `#!/bin/busybox sh
bb=/bin/busybox
fail() { echo "guest: $*"; echo b >/proc/sysrq-trigger; $bb sleep 10; }
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev
exec </dev/console >/dev/console 2>&1
for module in $($bb cat /modules/order); do $bb insmod $module || fail "cannot load $module"; done
$bb mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /host || fail "no root"
$bb mount -t tmpfs -o size=75% memory /memory
$bb mkdir /memory/upper /memory/work
$bb mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work overlay /root || fail "no overlay"
for folder in proc sys dev run; do $bb mkdir -p /root/$folder; done
for folder in proc sys dev; do $bb mount --move /$folder /root/$folder; done
$bb mount -t tmpfs -o mode=755 run /root/run
$bb mkdir /root/run/job
$bb cp /bin/busybox /job /root/run/job/
exec $bb switch_root /root /run/job/busybox sh /run/job/job
`;

/** A word that a shell takes as it is. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** What a guest does, as its first process. */
export interface Job {
  readonly command: readonly string[];
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** The folder of the kernel's modules, on the host as in the guest. */
  readonly modules: string;
}

/** Port 1 takes the command's output, port 2 its exit status. */
export function jobScript({ command, folder, env, modules }: Job): string {
  const version = modules.slice(modules.lastIndexOf('/') + 1);
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `bb=/run/job/busybox
$bb mkdir -p /dev/pts /dev/shm /run/lock /lib/modules
$bb mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
$bb mount -t tmpfs -o mode=1777 shm /dev/shm
$bb mount -t cgroup2 cgroup2 /sys/fs/cgroup
$bb ln -sf /proc/self/fd /dev/fd
$bb ln -sf fd/0 /dev/stdin; $bb ln -sf fd/1 /dev/stdout; $bb ln -sf fd/2 /dev/stderr
$bb mount --make-rshared /
$bb rm -rf /lib/modules/${version}
$bb ln -s ${quoted(modules)} /lib/modules/${version}
$bb hostname vm
$bb ip link set lo up
${exports.join('\n')}
output=$(echo /dev/vport*p1)
status=125
if cd ${quoted(folder)} && modprobe -a ${MODULES.join(' ')}; then
  $bb setsid ${command.map(quoted).join(' ')} </dev/null >$output 2>&1
  status=$?
fi
echo $status >\${output%1}2
echo b >/proc/sysrq-trigger
$bb sleep 10
`;
}
