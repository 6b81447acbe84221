// Loaded before a program where nothing says what localhost is, as in a root file system without /etc/hosts: it is this machine (RFC 6761 §6.3).
import dns from 'node:dns';

const { lookup } = dns;

Object.assign(dns, {
  lookup: (name: unknown, ...rest: readonly unknown[]): unknown =>
    Reflect.apply(lookup, dns, [name === 'localhost' ? '127.0.0.1' : name, ...rest]),
});
