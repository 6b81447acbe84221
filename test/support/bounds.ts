import { readFileSync } from 'node:fs';

/**
 * Every bound of the code, by file and name, and what it bounds: a row of the tables in SECURITY.md or docs/admission.md, or
 * nothing that a tenant, a client or an answer could fill.
 */
export const ROWS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'SECURITY.md': {
    'src/base/outside-text.ts MAX_MESSAGE_BYTES': 'text of others in a message',
    'src/base/token-buckets.ts MAX_BUCKETS': 'clients whose TLS handshakes are counted apart',
    'src/base/service-limits.ts DEFAULT_SERVICE_LIMITS': 'frontends of a Service in one IP family',
    'src/cli/telemetry.ts MOST_WAYS': 'endpoints with traffic that are counted between two readings',
    'src/control/stale-flows.ts MOST_GONE_EARLY': 'frontends that went during a change of the mode',
    'src/control/sync-cycle.ts MOST_ENTRIES': 'entries of one sync of changes',
    'src/dataplane/ipvs/refusal-counters.ts MOST_COUNTED': 'refused frontends that are counted, mode ipvs',
    'src/observe/rotated-file.ts MAX_WAITING': 'lines of a log file that wait for the disk',
    'src/observe/traces/changes.ts MAX_FOLLOWED': 'changes that are traced at a time',
    'src/observe/traces/exporting.ts MAX_WAITING': 'spans that wait for the collector',
    'src/plan/known-departures.ts MOST_DEPARTURES': 'removed endpoints that are remembered, in one IP family',
    'src/plan/planner.ts MOST_PAIRS': 'endpoints that one plan compares for slots, in one IP family',
    'src/plan/service-plan.ts MOST_CLIENT_ROOMS': 'clients with affinity, mode nftables',
    'src/plan/slot-table.ts MOST_TABLE_ENDPOINTS': 'endpoints that a table of slots shares, mode nftables',
    'src/plan/types.ts MOST_SLOTS': 'slots of one table, mode nftables',
    'src/record/progress.ts MAX_CHANGES': 'changes whose time is measured while the kernel takes none',
    'src/record/progress.ts MAX_TRIGGERS': 'changes whose time is measured while the kernel takes none',
    'src/serve/client-shares.ts LONGEST_WAIT_MS': 'time of the main thread for one client of the listeners',
    'src/serve/connection-limit.ts MAX_UNANSWERED': 'unanswered requests of one connection',
    'src/serve/listener.ts MAX_CONNECTIONS': 'connections to a health or metrics address',
    'src/serve/node-port-listeners.ts MAX_CONNECTIONS': 'connections to node ports on loopback',
    'src/serve/node-port-listeners.ts MAX_LISTENERS': 'listeners for node ports on loopback',
    'src/serve/paced-reading.ts MOST_HELD_BYTES': 'text of a client that waits for its time',
    'src/serve/service-health.ts MAX_CONNECTIONS': 'connections to health check node ports',
    'src/serve/status-socket.ts MAX_CONNECTIONS': 'connections to the status socket',
    'src/serve/profile-answer.ts MAX_SECONDS': 'a profile',
    'src/sources/kubernetes/codec/frames.ts MAX_FRAME_BYTES': 'a frame or item of the API server',
    'src/sources/kubernetes/watch/exchange.ts MAX_ERROR_BODY_BYTES': 'the text of a refusal of the API server',
    'src/sources/manifests/file-reading.ts MAX_FILE_BYTES': 'a manifest file',
    'src/sources/manifests/http-get.ts MAX_BODY_BYTES': 'the answer of a manifest URL',
    'src/sources/manifests/parse.ts MAX_BROKEN': 'broken objects of one manifest',
    'src/sources/manifests/parse.ts MAX_YAML_CHARS': 'a manifest in YAML',
    'src/sources/translate/balance.ts MOST_ZONES': 'zones that an annotation names',
    'src/sources/translate/intern.ts LONGEST_SHARED': 'names and lists of objects that are kept once',
    'packages/nodes/src/bugreport.ts MOST_BYTES': "a node's part of a bug report",
    'packages/nodes/src/bugreport.ts MOST_BYTES_OF_MANY': "a node's part of a bug report",
    'packages/nodes/src/differences.ts MAX_OBJECTS': "the report of a node's proxy",
    'packages/page/src/forward.ts MAX_SOCKETS': 'connections of the command `ui` to the status socket',
    'packages/page/src/live.ts MAX_CLIENTS': 'browsers that follow changes',
    'packages/page/src/node-answer.ts MAX_NODE_PROBLEMS': "the report of a node's proxy",
    'packages/page/src/server.ts MAX_EXPLAINING': 'explanations at a time',
    'packages/secured/src/handshakes.ts MAX_ADMITTED': 'clients that were last answered with success',
    'packages/secured/src/reviews.ts MAX_UNDER_WAY': 'reviews of tokens and permissions at a time',
  },
  'docs/admission.md': {
    'packages/webhook/src/judge.ts MAX_REFUSAL_BYTES': 'text of a rejection',
    'packages/webhook/src/judge.ts MAX_WARNINGS': 'warnings in an answer',
    'packages/webhook/src/judge.ts MAX_WARNING_BYTES': 'warnings in an answer',
    'packages/webhook/src/pages.ts MAX_BODY_BYTES': 'size of a review',
    'packages/webhook/src/review.ts MAX_DEPTH': 'lists and mappings within each other in a review',
    'packages/webhook/src/review.ts MAX_VALUES': 'values of a review',
    'packages/webhook/src/pages.ts MAX_PENDING_BYTES': 'memory of incomplete reviews',
    'packages/webhook/src/pages.ts MAX_WAITING_BYTES': 'whole reviews that wait for a step',
  },
};

/** Bounds without a row, by the reason. A file alone stands for all of its bounds. */
export const WITHOUT_ROW: Readonly<Record<string, readonly string[]>> = {
  'the range of a field, or what a flag takes': [
    'src/commands/process-commands.ts LIMIT',
    'src/config/checks.ts MAX_IPVS_TIMEOUT',
    'src/config/environment.ts MOST_RETRY_SECONDS',
    'src/plan/balance.ts MOST_SCHEDULED',
    'src/sources/translate/balance.ts MOST_SECONDS',
    'src/sources/translate/ending-connections.ts LONGEST_SECONDS',
    'src/sources/translate/service.ts MAX_AFFINITY_SECONDS',
    'src/sources/translate/service.ts MOST_SECONDS',
    'src/state/rows.ts MOST_WEIGHT',
    'packages/check/src/tables/kubeadm.ts MAX_NODE_BITS',
    'packages/check/src/tables/kubeadm.ts MAX_SERVICE_BITS',
  ],
  'a length or depth of a format, or of the kernel': [
    'native/addon/linux/iptables_argument.cc',
    'native/addon/linux/iptables_argument.h',
    'native/addon/linux/ipvs.cc',
    'native/addon/linux/json_argument.cc',
    'native/addon/linux/transaction_argument.cc',
    'native/netlink/message_writer.cc',
    'native/nftables/compile.cc',
    'native/nftables/compile_rule.h',
    'native/nftables/operand.cc',
    'native/nftables/value.h',
    'src/base/pack-address.ts LONGEST_DOTTED',
    'src/base/packed-names.ts MOST_NAME_BYTES',
    'src/base/plain-json.ts MAX_DEPTH',
    'src/base/timeout.ts MAX_TIMEOUT_MS',
    'src/base/yaml.ts MAX_INT64',
    'src/cli/sole-proxy.ts LONGEST_MODE',
    'src/config/duration.ts MAX_DIGITS',
    'src/config/environment.ts MAX_SOCKET_PATH_BYTES',
    'src/control/egress.ts MAX_SOCKET_PATH_BYTES',
    'src/dataplane/ipvs/wire.ts MAX_ELEMENTS',
    'src/dataplane/ipvs/wire.ts PEER_MAX_ELEMENTS',
    'src/dataplane/xtables/rules.ts COMMENT_LIMIT',
    'src/plan/node-plan.ts LONGEST_INTERFACE_NAME',
    'src/plan/frontend-fields.ts SERVICE_PORT_LIMIT',
    'src/sources/kubernetes/codec/metadata.ts MAX_SECONDS',
    'src/sources/kubernetes/codec/protobuf-list.ts MAX_HEADER_BYTES',
    'src/sources/kubernetes/codec/wire.ts',
    'src/sources/kubernetes/events/event-body.ts',
    'src/sources/translate/endpoint-columns.ts MOST_ZONES',
    'src/sources/translate/metadata.ts',
    'packages/nodes/src/bugreport.ts LONGEST_FOLDER',
    'packages/page/src/server.ts MAX_SERVICES',
    'packages/webhook/src/webhook.ts MAX_SERVICE_NAME',
  ],
  'how much of a list or text is shown, or kept to be shown': [
    'native/iptables/child_process.cc',
    'src/base/similar.ts',
    'src/config/errors.ts',
    'src/dataplane/foreign/print.ts',
    'src/dataplane/nftables/differences.ts LIMIT',
    'src/dataplane/node-faults.ts MOST',
    'src/dataplane/trace/passage.ts MOST',
    'src/observe/change-log.ts MOST',
    'src/observe/log.ts MAX_CAUSES',
    'src/observe/observations.ts MOST_FILES',
    'src/dataplane/kernelspace/driver.ts MOST_NAMED',
    'src/dataplane/xtables/unlisted.ts MOST_NAMED',
    'src/observe/traces/run-spans.ts MOST_REPAIRS',
    'src/serve/client-shares.ts MOST_NAMED',
    'src/serve/explain-target.ts MAX_LISTED',
    'src/serve/foreign-rules.ts MOST_ENDPOINTS',
    'src/serve/node-routes.ts MOST_NETWORKS',
    'src/serve/observed-node.ts MOST_UNUSED',
    'src/serve/observed-packet.ts MAX_ROUTES',
    'src/sources/kubernetes/auth/kubeconfig.ts MAX_SHOWN',
    'src/sources/manifests/problems.ts MAX_SHOWN',
    'src/sources/translate/errors.ts MAX_VALUE_LENGTH',
    'src/sources/translate/fields.ts MAX_PROBLEMS',
    'packages/check/src/agreement.ts',
    'packages/check/src/agreement/ports.ts',
    'packages/check/src/documents.ts',
    'packages/check/src/findings.ts',
    'packages/nodes/src/differences.ts MAX_PARTS',
    'packages/nodes/src/node-answer.ts',
    'packages/page/browser/src/service-rows.ts MOST',
    'packages/page/src/changed-services.ts MAX_KEYS',
    'packages/page/src/explained.ts MAX_ENDPOINTS',
    'packages/page/src/query.ts',
    'packages/page/src/service-list.ts',
    'packages/page/src/service-search.ts MAX_WORDS',
    'packages/secured/src/audit.ts',
    'packages/secured/src/gate.ts',
  ],
  'a batch, a retry or a pause of our own': [
    'native/netlink/socket.h',
    'native/nftables/transaction.cc',
    'src/control/config-watch.ts LONGEST_RETRY_MS',
    'src/control/kernel-values.ts LONGEST_INTERVAL_MS',
    'src/control/node-lookup.ts LIMITS',
    'src/control/pacing.ts',
    'src/dataplane/iptables/chain-writer.ts MOST_REFUSED',
    'src/dataplane/iptables/group-writer.ts',
    'src/dataplane/iptables/leaf.ts',
    'src/dataplane/iptables/spread.ts MOST_BUCKETS',
    'src/dataplane/ipvs/desired.ts MOST_STATES',
    'src/dataplane/ipvs/drains.ts',
    'src/dataplane/kernelspace/batches.ts MOST_READ',
    'src/control/selftest-scene.ts SELFTEST_LONGEST_MS',
    'src/dataplane/kernelspace/sending.ts MOST_REMOVALS',
    'src/dataplane/nftables/delivery.ts',
    'src/dataplane/nftables/driver.ts MOST_REMOVED',
    'src/dataplane/nftables/listing-slots.ts SLOT_LIMIT',
    'src/dataplane/nftables/unneeded.ts',
    'src/dataplane/trace/table.ts LIMIT',
    'src/host/linux/sysctl.ts SCALED_MAX',
    'src/observe/traces/exporting.ts MAX_BATCH',
    'src/observe/traces/spans.ts MAX_DRIFT_MS',
    'src/sources/kubernetes/connect/connection-pool.ts MAX_IDLE',
    'src/sources/kubernetes/events/event-sender.ts RETRY_MAX_MS',
    'src/sources/kubernetes/watch/reflector.ts MAX_STREAMED_ATTEMPTS',
    'src/sources/manifests/files.ts MAX_EVENTS',
    'src/sources/manifests/parse.ts MAX_CHARS_HERE',
  ],
  'files, programs and answers of those who are trusted with the configuration or the node': [
    'native/addon/linux/iptables.cc',
    'native/probe/attempt.cc',
    'src/base/bounded-file.ts',
    'src/cli/bugreport.ts MOST_BYTES',
    'src/config/tables/expression.ts MAX_BYTES',
    'src/config/tables/regular-expression.ts',
    'src/config/yaml.ts MAX_CONFIG_BYTES',
    'src/dataplane/foreign/read.ts',
    'src/dataplane/iptables/later-decisions.ts MOST_RULES',
    'src/dataplane/foreign/walk.ts',
    'src/host/network-claim.ts MAX_ANSWER',
    'src/host/windows/log-file.ts MOST_BYTES',
    'src/serve/debug-answers.ts MAX_BODY_BYTES',
    'src/sources/kubernetes/auth/document.ts',
    'src/sources/kubernetes/auth/exec-run.ts',
    'src/sources/kubernetes/certificate/signing.ts MAX_BYTES',
    'src/sources/kubernetes/connect/attempt.ts MAX_ANSWER_BYTES',
    'src/sources/kubernetes/connect/transport.ts MAX_ANSWER_BYTES',
    'src/sources/kubernetes/events/event-subject.ts MAX_BYTES',
    'src/sources/manifests/files.ts MAX_LINKS',
    'packages/check/src/cluster.ts MAX_ANSWER_BYTES',
    'packages/check/src/read-file.ts MAX_FILE_BYTES',
    'packages/nodes/src/cluster-api.ts MAX_PAGE_BYTES',
    'packages/nodes/src/proxy-asker.ts',
    'packages/secured/src/issuer-keys.ts MAX_BYTES',
    'packages/secured/src/self-signed.ts MAX_ADDRESSES',
    'packages/webhook/src/informers.ts',
  ],
};

const DECLARED =
  /^\s*(?:export |static |inline )*(?:const|constexpr)(?: std::\w+| int| double)? ((?:[A-Z0-9]+_)*(?:MAX|MOST|LIMITS?|LONGEST|LARGEST)(?:_[A-Z0-9]+)*|kMax\w*)(?:: \w+)? = (.*)$/gm;
/** Values of declarations that are lists of names, not bounds. */
const NO_BOUND = /^(?:\[|'service|\{ \.\.\.|2n)/;

/** The bounds that a source file declares, as `NAME`, with their text. */
export function boundsOf(file: string): ReadonlyMap<string, string> {
  const found = [...readFileSync(file, 'utf8').matchAll(DECLARED)];
  return new Map(found.flatMap(([, name = '', text = '']) => (NO_BOUND.test(text) ? [] : [[name, text]])));
}

/** A number as sources write it: `1 << 20`, `16 * 1024`, `65_536`. */
export function numberOf(text: string): number {
  const plain = /^([\d_]+)(?: (<<|\*\*?) ([\d_]+))?(?: (\*) ([\d_]+))*;/.exec(text);
  if (plain === null) return NaN;
  const [, first = '', operator, second = '0'] = plain;
  const [one, other] = [first, second].map((digits) => Number(digits.replaceAll('_', '')));
  if (one === undefined || other === undefined || operator === undefined) return one ?? NaN;
  const rest = text
    .split('*')
    .slice(2)
    .map((part) => Number(part.replaceAll(/[ _;]/g, '')));
  const product = operator === '<<' ? one * 2 ** other : operator === '**' ? one ** other : one * other;
  return operator === '*' ? rest.reduce((value, part) => value * part, product) : product;
}

/** The numbers of each row of a table, by its first cell. */
export type Bounds = Readonly<Record<string, readonly number[]>>;

/** The table of bounds of a page. Numbers in code, such as those of flags' names, do not count. */
export function documented(page: string): Bounds {
  const [, section = ''] = readFileSync(page, 'utf8').split('\n## Bounds\n');
  const [table = ''] = section.split('\n## ');
  const rows = [...table.matchAll(/^\| (.*?) \| (.*?) \|/gm)].filter(
    ([, first = '']) => !/^(?:Resource|-+)$/.test(first),
  );
  return Object.fromEntries(
    rows.map(([, resource = '', bound = '']) => {
      const numbers = bound.replaceAll(/`[^`]*`/g, '').match(/\d[\d,.]*/g) ?? [];
      return [resource, numbers.map((text) => Number(text.replace(/[,.]$/, '').replaceAll(',', '')))];
    }),
  );
}
