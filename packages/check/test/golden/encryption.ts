import type { Golden } from './golden.js';

export const ENCRYPTION: readonly Golden[] = [
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    right: [
      'resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBw==}]}}]}]',
      'resources: [{resources: [secrets, pandas.example.com], providers: [{aescbc: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=}]}}, {identity: {}}]}, {resources: [events], providers: [{identity: {}}]}, {resources: ["*.apps"], providers: [{aesgcm: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBw==}, {name: b, secret: BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH}]}}, {secretbox: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=}]}}]}, {resources: ["*.*"], providers: [{kms: {apiVersion: v2, name: k, endpoint: "unix:///k.sock", timeout: 3s}}]}]',
    ],
    wrong: [
      [
        'resources: [{resources: [secrets], providers: [{kms: {name: k, endpoint: "unix:///k.sock", cachesize: 10}}]}]',
        'warning: EncryptionConfiguration.resources[0].providers[0].kms.apiVersion: "v1": is KMS v1, which needs --feature-gates=KMSv1=true: should be "v2"',
      ],
      [
        'resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: a, secret: YWJj}]}}]}]',
        'error: EncryptionConfiguration.resources[0].providers[0].aescbc.keys[0].secret: has 3 bytes: should be 16 or 24 or 32 bytes in base64',
      ],
      [
        'resources: [{resources: [Secrets, "*.events.k8s.io", deployments.extensions, "pods.*", apiserveripinfo], providers: [{kms: {apiVersion: v2, name: "a:b", endpoint: "unix:///a", timeout: 3s}}, {kms: {name: k, endpoint: "unix:///a"}}, {kms: {apiVersion: v2, name: k, endpoint: "unix:///a"}}]}]',
        'error: EncryptionConfiguration.resources[0].providers[0].kms.name: "a:b": has a colon',
        'warning: EncryptionConfiguration.resources[0].providers[1].kms.apiVersion: "v1": is KMS v1, which needs --feature-gates=KMSv1=true: should be "v2"',
        'error: EncryptionConfiguration.resources[0].resources[0]: "Secrets" has capital letters',
        'error: EncryptionConfiguration.resources[0].resources[1]: "*.events.k8s.io" is stored as "events"',
        'error: EncryptionConfiguration.resources[0].resources[2]: "deployments.extensions" is of a group that is no more',
        'error: EncryptionConfiguration.resources[0].resources[3]: "pods.*" names a resource in all groups',
        'error: EncryptionConfiguration.resources[0].resources[4]: "apiserveripinfo" is no resource of an API',
        'error: EncryptionConfiguration.resources[0].providers[2].kms.name: "k": is given twice',
      ],
      [
        'resources: [{resources: [], providers: []}]',
        'error: EncryptionConfiguration.resources[0].resources: is empty: should be a list of at least 1',
        'error: EncryptionConfiguration.resources[0].providers: is empty: should be a list of at least 1',
      ],
      [
        'resources: [{resources: [secrets], providers: [{aescbc: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBw==}, {name: a, secret: S3cr3t}, {secret: ""}]}}, {secretbox: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw==}]}}, {aesgcm: {keys: []}, identity: {}}, {}, {aesgcm: S3cr3t}, {aesgcm: {keys: [S3cr3t], S3cr3tKey: 1}}]}]',
        'error: EncryptionConfiguration.resources[0].providers[0].aescbc.keys[1].secret: cannot be read: should be base64',
        'error: EncryptionConfiguration.resources[0].providers[0].aescbc.keys[1].name: is given twice',
        'error: EncryptionConfiguration.resources[0].providers[0].aescbc.keys[2].name: is missing: should be text',
        'error: EncryptionConfiguration.resources[0].providers[0].aescbc.keys[2].secret: is missing: should be base64',
        'error: EncryptionConfiguration.resources[0].providers[1].secretbox.keys[0].secret: has 31 bytes: should be 32 bytes in base64',
        'error: EncryptionConfiguration.resources[0].providers[2].aesgcm.keys: is empty: should be a list of at least 1',
        'error: EncryptionConfiguration.resources[0].providers[2].identity: must not be given beside aesgcm',
        'error: EncryptionConfiguration.resources[0].providers[3]: needs one of aesgcm, aescbc, secretbox, identity, kms',
        'error: EncryptionConfiguration.resources[0].providers[4].aesgcm: has the wrong type, text: should be a mapping',
        'error: EncryptionConfiguration.resources[0].providers[5].aesgcm.keys[0]: has the wrong type, text: should be a mapping',
        'error: EncryptionConfiguration.resources[0].providers[5].aesgcm.…: is an unknown field',
      ],
      [
        'resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: a, secret: BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBw==}]}}, {kms: {}}]}]',
        'error: EncryptionConfiguration.resources[0].providers[0].aesgcm.keys[0].secret: has 31 bytes: should be 16 or 24 or 32 bytes in base64',
        'error: EncryptionConfiguration.resources[0].providers[1].kms.name: is missing: should be text',
        'error: EncryptionConfiguration.resources[0].providers[1].kms.endpoint: is missing: should be a socket such as unix:///run/x.sock',
        'warning: EncryptionConfiguration.resources[0].providers[1].kms.apiVersion: "v1": is KMS v1, which needs --feature-gates=KMSv1=true: should be "v2"',
      ],
      [
        'resources: [{resources: ["*.", secrets, "*"], providers: [{identity: {}}]}, {resources: [configmaps, deployments.apps, "*.*"], providers: [{kms: {name: "a:b", endpoint: /x, cachesize: 0, timeout: 0s}}]}, {resources: [deployments.apps, a.b], providers: [{kms: {apiVersion: v2, name: k, cachesize: 10, endpoint: "unix:///x"}}, {kms: {apiVersion: v2, name: k, endpoint: "unix:///y"}}]}]',
        'error: EncryptionConfiguration.resources[1].providers[0].kms.endpoint: "/x": cannot be read: should be a socket such as unix:///run/x.sock',
        'error: EncryptionConfiguration.resources[1].providers[0].kms.timeout: "0s": cannot be read: should be a duration above 0s',
        'error: EncryptionConfiguration.resources[1].providers[0].kms.cachesize: 0: is zero: should be above 0, or negative for no cache',
        'warning: EncryptionConfiguration.resources[1].providers[0].kms.apiVersion: "v1": is KMS v1, which needs --feature-gates=KMSv1=true: should be "v2"',
        'error: EncryptionConfiguration.resources[2].providers[0].kms.cachesize: 10: must not be given for KMS v2',
        'error: EncryptionConfiguration.resources[0].resources[1]: "secrets" overlaps "*." in the same list',
        'error: EncryptionConfiguration.resources[0].resources[2]: "*" is no wildcard: should be "*." for the core group or "*.*" for everything',
        'error: EncryptionConfiguration.resources[1].resources[0]: "configmaps" does nothing, as "*." stands before it',
        'error: EncryptionConfiguration.resources[1].resources[0]: "configmaps" overlaps "*.*" in the same list',
        'error: EncryptionConfiguration.resources[1].resources[1]: "deployments.apps" overlaps "*.*" in the same list',
        'error: EncryptionConfiguration.resources[2].resources[0]: "deployments.apps" does nothing, as "deployments.apps" stands before it',
        'error: EncryptionConfiguration.resources[2].resources[1]: "a.b" does nothing, as "*.*" stands before it',
        'error: EncryptionConfiguration.resources[2].providers[1].kms.name: "k": is given twice',
      ],
    ],
  },
];

/** Before the gate of KMS v1 was off. */
export const OLD_ENCRYPTION: readonly Golden[] = [
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    release: 28,
    right: [],
    wrong: [
      [
        'resources: [{resources: [secrets], providers: [{kms: {name: "a:b", endpoint: "unix:///a"}}]}]',
        'warning: EncryptionConfiguration.resources[0].providers[0].kms.apiVersion: "v1": is KMS v1, which is deprecated: should be "v2"',
      ],
    ],
  },
];
