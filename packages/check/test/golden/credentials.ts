import { PEM_CERTIFICATE, PEM_KEY, type Golden } from './golden.js';

/** As text in YAML. */
const [CERTIFICATE, KEY] = [PEM_CERTIFICATE, PEM_KEY].map((text) =>
  JSON.stringify(Buffer.from(text, 'base64').toString('utf8')),
);

export const CREDENTIALS: readonly Golden[] = [
  {
    apiVersion: 'v1',
    kind: 'Config',
    right: [
      `clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: ${PEM_CERTIFICATE}, proxy-url: "http://u:S3cr3t@p", tls-server-name: x, extensions: [{name: a, extension: {}}]}}]
users: [{name: u, user: {client-certificate-data: ${PEM_CERTIFICATE}, client-key-data: ${PEM_KEY}}}, {name: e, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [S3cr3t], env: [{name: A, value: S3cr3t}], interactiveMode: Never}}}, {name: t, user: {token: S3cr3t, as: a, as-groups: [b], as-user-extra: {c: [d]}}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: default}}]
current-context: x
preferences: {colors: true}`,
    ],
    wrong: [
      [
        `clusters: [{name: c, cluster: {certificate-authority: a, certificate-authority-data: "S3cr3t?", insecure-skip-tls-verify: true}}, {name: c, cluster: {server: ftp, proxy-url: [S3cr3t]}}, {cluster: S3cr3t}]
users: [{name: u, user: {client-key-data: "S3cr3t!", client-key: k, token: [S3cr3t], password: S3cr3t, tokn: S3cr3t, S3cr3tKey: 1}}, {name: e, user: {exec: {apiVersion: client.authentication.k8s.io/v1, args: S3cr3t, env: S3cr3t}, auth-provider: {name: gcp, config: {token: S3cr3t}}}}, {name: f, user: S3cr3t}]
contexts: [{name: x, context: {cluster: d, user: v, namespace: A_B}}, {name: y}]
current-context: z`,
        'error: Config.clusters[0].cluster.server: is missing: should be a URL that begins with http:// or https://',
        'error: Config.clusters[0].cluster.certificate-authority-data: cannot be read: should be base64',
        'error: Config.clusters[0].cluster.certificate-authority-data: must not be given beside certificate-authority',
        'error: Config.clusters[0].cluster.certificate-authority: "a": must not be given with insecure-skip-tls-verify',
        'warning: Config.clusters[0].cluster.insecure-skip-tls-verify: true: lets any server answer in place of the API server',
        'error: Config.clusters[1].cluster.server: "ftp": cannot be read: should be a URL that begins with http:// or https://',
        'error: Config.clusters[1].cluster.proxy-url: has the wrong type, a list: should be a URL that begins with http://, https:// or socks5://',
        'error: Config.clusters[1].name: is given twice',
        'error: Config.clusters[2].name: is missing: should be text',
        'error: Config.clusters[2].cluster: has the wrong type, text: should be a mapping',
        'error: Config.users[0].user.client-key-data: cannot be read: should be base64',
        'error: Config.users[0].user.token: has the wrong type, a list: should be text',
        'error: Config.users[0].user.tokn: is an unknown field',
        'error: Config.users[0].user.…: is an unknown field',
        'error: Config.users[0].user.client-key-data: must not be given beside client-key',
        'error: Config.users[0].user.password: needs username beside it',
        'error: Config.users[0].user: must have client-certificate and client-key, or neither',
        'warning: Config.users[1].user.auth-provider: is deprecated: should be exec',
        'error: Config.users[1].user.exec.command: is missing: should be text',
        'error: Config.users[1].user.exec.args: has the wrong type, text: should be a list',
        'error: Config.users[1].user.exec.env: has the wrong type, text: should be a list',
        'error: Config.users[1].user.exec.interactiveMode: is missing: should be "Never" or "IfAvailable" or "Always"',
        'error: Config.users[1].user.auth-provider: must not be given beside exec',
        'error: Config.users[2].user: has the wrong type, text: should be a mapping',
        'error: Config.contexts[0].context.namespace: "A_B": cannot be read: should be a DNS label: at most 63 of a-z, 0-9 and "-"',
        'error: Config.contexts[1].name: true: has the wrong type: should be text',
        'error: Config.contexts[1].context: is missing: should be a mapping',
        'error: Config.contexts[0].context.cluster: "d": is none of clusters',
        'error: Config.contexts[0].context.user: "v": is none of users',
        'error: Config.current-context: "z": is none of contexts',
      ],
      [
        'clusters: [{name: c, cluster: {server: "https://a", certificate-authority-data: UzNjcjN0}}]\nusers: [{name: u, user: {client-certificate-data: UzNjcjN0, client-key-data: UzNjcjN0}}]',
        'error: Config.clusters[0].cluster.certificate-authority-data: has no certificate: should be PEM, in base64',
        'error: Config.users[0].user.client-certificate-data: has no certificate: should be PEM, in base64',
        'error: Config.users[0].user.client-key-data: has no private key: should be PEM, in base64',
      ],
      [
        `users: [{name: u, user: {client-certificate: a, client-certificate-data: ${PEM_CERTIFICATE}, client-key: b}}]`,
        'error: Config.users[0].user.client-certificate-data: must not be given beside client-certificate',
      ],
      [
        'users: [{name: u, user: {token: S3cr3t, username: v, as-groups: [a], as-user-extra: {b: [c]}, as-uid: d}}]\npreferences: {color: true}\nclusters: [{name: c, cluster: {server: "https://a", proxy-url: "tcp://S3cr3t"}}]',
        'error: Config.users[0].user.as-uid: "d": needs as beside it',
        'error: Config.users[0].user.as-groups: needs as beside it',
        'error: Config.users[0].user.as-user-extra: needs as beside it',
        'error: Config.users[0].user.username: "v": must not be given beside token',
        'error: Config.preferences.color: is an unknown field',
        'error: Config.clusters[0].cluster.proxy-url: cannot be read: should be a URL that begins with http://, https:// or socks5://',
      ],
      [
        `clusters: S3cr3t
users: S3cr3t`,
        'error: Config.clusters: has the wrong type, text: should be a list',
        'error: Config.users: has the wrong type, text: should be a list',
      ],
    ],
  },
  {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    right: [
      `spec: {interactive: false, cluster: {server: "https://x", certificate-authority-data: ${PEM_CERTIFICATE}, config: {a: 1}}}`,
      'spec: {interactive: true}\nstatus: {token: S3cr3t, expirationTimestamp: "2030-01-01T00:00:00Z"}',
      `spec: {interactive: true}\nstatus: {clientCertificateData: ${CERTIFICATE}, clientKeyData: ${KEY}}`,
    ],
    wrong: [
      ['status: {token: S3cr3t}', 'warning: ExecCredential.spec: is missing, which clients allow: should be a mapping'],
      [
        'spec: {}\nstatus: {token: S3cr3t}',
        'warning: ExecCredential.spec.interactive: is missing, which clients allow: should be true or false',
      ],
      [
        'spec: {interactive: true, cluster: {server: "https://a", certificate-authority-data: UzNjcjN0}}\nstatus: {clientCertificateData: S3cr3t, clientKeyData: S3cr3t}',
        'error: ExecCredential.spec.cluster.certificate-authority-data: has no certificate: should be PEM, in base64',
        'error: ExecCredential.status.clientCertificateData: has no certificate: should be PEM',
        'error: ExecCredential.status.clientKeyData: has no private key: should be PEM',
      ],
      [
        `spec: {interactive: "no", cluster: {}}
status: {expirationTimestamp: soon}`,
        'error: ExecCredential.spec.cluster.server: is missing: should be a URL that begins with http:// or https://',
        'error: ExecCredential.spec.interactive: "no": has the wrong type: should be true or false',
        'error: ExecCredential.status.expirationTimestamp: "soon": cannot be read: should be a time as in RFC 3339',
        'error: ExecCredential.status: needs token or clientCertificateData',
      ],
      [
        `spec: {interactive: true}\nstatus: {clientKeyData: ${KEY}}`,
        'error: ExecCredential.status: needs token or clientCertificateData',
        'error: ExecCredential.status.clientKeyData: needs clientCertificateData beside it',
      ],
      [
        `spec: {interactive: true}\nstatus: {clientCertificateData: ${CERTIFICATE}, Token: S3cr3t, token: 5}`,
        'error: ExecCredential.status.token: has the wrong type, a number: should be text',
        'error: ExecCredential.status.Token: has the wrong case: should be token',
        'error: ExecCredential.status.clientCertificateData: needs clientKeyData beside it',
      ],
      [
        'spec: {interactive: true}\nstatus: S3cr3t',
        'error: ExecCredential.status: has the wrong type, text: should be a mapping',
      ],
    ],
  },
];
