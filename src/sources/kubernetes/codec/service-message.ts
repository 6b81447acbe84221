import type { Metadata } from './metadata.js';
import { append, BYTES, tagOf, VARINT, type Cursor } from './wire.js';

/** Field numbers of core/v1. */
const SERVICE = { SPEC: tagOf(2, BYTES), STATUS: tagOf(3, BYTES) };
const SPEC = {
  PORTS: tagOf(1, BYTES),
  CLUSTER_IP: tagOf(3, BYTES),
  TYPE: tagOf(4, BYTES),
  EXTERNAL_IPS: tagOf(5, BYTES),
  SESSION_AFFINITY: tagOf(7, BYTES),
  SOURCE_RANGES: tagOf(9, BYTES),
  EXTERNAL_TRAFFIC_POLICY: tagOf(11, BYTES),
  HEALTH_CHECK_NODE_PORT: tagOf(12, VARINT),
  SESSION_AFFINITY_CONFIG: tagOf(14, BYTES),
  CLUSTER_IPS: tagOf(18, BYTES),
  IP_FAMILIES: tagOf(19, BYTES),
  INTERNAL_TRAFFIC_POLICY: tagOf(22, BYTES),
};
const PORT = {
  NAME: tagOf(1, BYTES),
  PROTOCOL: tagOf(2, BYTES),
  PORT: tagOf(3, VARINT),
  NODE_PORT: tagOf(5, VARINT),
};
const AFFINITY_CONFIG = { CLIENT_IP: tagOf(1, BYTES) };
const CLIENT_IP = { TIMEOUT_SECONDS: tagOf(1, VARINT) };
const STATUS = { LOAD_BALANCER: tagOf(1, BYTES) };
const LOAD_BALANCER = { INGRESS: tagOf(1, BYTES) };
const INGRESS = { IP: tagOf(1, BYTES), IP_MODE: tagOf(3, BYTES) };

interface Port {
  name: string;
  protocol: string;
  port: number;
  nodePort: number;
}

interface AffinityConfig {
  clientIP: { timeoutSeconds: number | null } | null;
}

class Spec {
  ports: Port[] | null = null;
  clusterIP = '';
  type = '';
  externalIPs: string[] | null = null;
  sessionAffinity = '';
  loadBalancerSourceRanges: string[] | null = null;
  externalTrafficPolicy = '';
  healthCheckNodePort = 0;
  sessionAffinityConfig: AffinityConfig | null = null;
  clusterIPs: string[] | null = null;
  ipFamilies: string[] | null = null;
  internalTrafficPolicy = '';
}

interface Ingress {
  ip: string;
  ipMode: string | null;
}

export function readService(cursor: Cursor, metadata: Metadata): unknown {
  const spec = new Spec();
  const ingress: Ingress[] = [];
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === SERVICE.SPEC) readSpec(cursor, spec);
    else if (tag === SERVICE.STATUS) readStatus(cursor, ingress);
    else cursor.skip(tag);
  }
  return { metadata, spec, status: { loadBalancer: { ingress } } };
}

function readSpec(cursor: Cursor, spec: Spec): void {
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (!readAddressField(cursor, tag, spec)) readPolicyField(cursor, tag, spec);
  }
  cursor.leave(outer);
}

function readAddressField(cursor: Cursor, tag: number, spec: Spec): boolean {
  switch (tag) {
    case SPEC.PORTS:
      spec.ports = append(spec.ports, readPort(cursor));
      return true;
    case SPEC.CLUSTER_IP:
      spec.clusterIP = cursor.text();
      return true;
    case SPEC.CLUSTER_IPS:
      spec.clusterIPs = append(spec.clusterIPs, cursor.text());
      return true;
    case SPEC.IP_FAMILIES:
      spec.ipFamilies = append(spec.ipFamilies, cursor.sharedText());
      return true;
    case SPEC.EXTERNAL_IPS:
      spec.externalIPs = append(spec.externalIPs, cursor.text());
      return true;
    case SPEC.SOURCE_RANGES:
      spec.loadBalancerSourceRanges = append(spec.loadBalancerSourceRanges, cursor.text());
      return true;
    default:
      return false;
  }
}

function readPolicyField(cursor: Cursor, tag: number, spec: Spec): void {
  switch (tag) {
    case SPEC.TYPE:
      spec.type = cursor.sharedText();
      return;
    case SPEC.SESSION_AFFINITY:
      spec.sessionAffinity = cursor.sharedText();
      return;
    case SPEC.SESSION_AFFINITY_CONFIG:
      spec.sessionAffinityConfig = readAffinityConfig(cursor);
      return;
    case SPEC.EXTERNAL_TRAFFIC_POLICY:
      spec.externalTrafficPolicy = cursor.sharedText();
      return;
    case SPEC.INTERNAL_TRAFFIC_POLICY:
      spec.internalTrafficPolicy = cursor.sharedText();
      return;
    case SPEC.HEALTH_CHECK_NODE_PORT:
      spec.healthCheckNodePort = cursor.integer();
      return;
    default:
      cursor.skip(tag);
  }
}

function readPort(cursor: Cursor): Port {
  const port: Port = { name: '', protocol: '', port: 0, nodePort: 0 };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === PORT.NAME) port.name = cursor.sharedText();
    else if (tag === PORT.PROTOCOL) port.protocol = cursor.sharedText();
    else if (tag === PORT.PORT) port.port = cursor.integer();
    else if (tag === PORT.NODE_PORT) port.nodePort = cursor.integer();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return port;
}

function readAffinityConfig(cursor: Cursor): AffinityConfig {
  const config: AffinityConfig = { clientIP: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === AFFINITY_CONFIG.CLIENT_IP) config.clientIP = { timeoutSeconds: readTimeout(cursor) };
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return config;
}

function readTimeout(cursor: Cursor): number | null {
  let seconds: number | null = null;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === CLIENT_IP.TIMEOUT_SECONDS) seconds = cursor.integer();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return seconds;
}

function readStatus(cursor: Cursor, ingress: Ingress[]): void {
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === STATUS.LOAD_BALANCER) readLoadBalancer(cursor, ingress);
    else cursor.skip(tag);
  }
  cursor.leave(outer);
}

function readLoadBalancer(cursor: Cursor, ingress: Ingress[]): void {
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === LOAD_BALANCER.INGRESS) ingress.push(readIngress(cursor));
    else cursor.skip(tag);
  }
  cursor.leave(outer);
}

function readIngress(cursor: Cursor): Ingress {
  const entry: Ingress = { ip: '', ipMode: null };
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === INGRESS.IP) entry.ip = cursor.text();
    else if (tag === INGRESS.IP_MODE) entry.ipMode = cursor.sharedText();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return entry;
}
