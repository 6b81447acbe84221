import { quoted, type Job } from '../vm/guest.js';

/** Lines by which the machine says where the command's output begins, and how the command ended. */
export const BEGIN = '== the command begins';
export const END = '== the command ended: ';

/** Modules that are loaded before the command runs: the kernel does not load all of them by itself. */
const MODULES = ['br_netfilter', 'ip_vs', 'dummy', 'nf_conntrack'];

/**
 * The first process: it puts a layer of memory that takes what is written over the host's files, and hands over to the job. Its programs are the host's.
 *
 * @param folder where the scripts are.
 */
export function initScript({ modules }: Job, folder: string): string {
  return `#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
fail() { echo "guest: $*"; echo o >/proc/sysrq-trigger; sleep 10; }
mount -n -t proc proc /proc
insmod ${quoted(`${modules}/kernel/fs/overlayfs/overlay.ko`)} || fail 'cannot load overlay'
mount -n -t tmpfs -o size=75% memory /mnt || fail 'no memory'
mkdir /mnt/upper /mnt/work /mnt/root
mount -n -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root || fail 'no overlay'
cd /mnt/root
mkdir -p .host
umount -n /proc
pivot_root . .host || fail 'no root'
exec chroot . /bin/sh ${quoted(`${folder}/job`)} </dev/console >/dev/console 2>&1
`;
}

export function jobScript({ command, folder, env, modules }: Job): string {
  const version = modules.slice(modules.lastIndexOf('/') + 1);
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /
mount -n -t proc proc /proc
mount -n -t sysfs sysfs /sys
mount -n -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
stty -opost
mkdir -p /dev/pts /dev/shm
mount -n -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -n -t tmpfs -o mode=1777 shm /dev/shm
mount -n -t tmpfs -o mode=755 run /run
mkdir -p /run/lock
mount -n -t tmpfs -o mode=1777 tmp /run/lock
mount -n -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sf /proc/self/fd /dev/fd
ln -sf fd/0 /dev/stdin; ln -sf fd/1 /dev/stdout; ln -sf fd/2 /dev/stderr
rm -rf /lib/modules/${version}
mkdir -p /lib/modules
ln -s ${quoted(modules)} /lib/modules/${version}
mount -n --make-rshared /
hostname uml
ip link set lo up
${exports.join('\n')}
echo '${BEGIN}'
status=125
if cd ${quoted(folder)} && modprobe -a ${MODULES.join(' ')}; then
  setsid ${command.map(quoted).join(' ')} </dev/null 2>&1
  status=$?
fi
echo "${END}$status"
echo o >/proc/sysrq-trigger
sleep 10
`;
}
