import type { Golden } from './golden.js';

export const ACCESS: readonly Golden[] = [
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthenticationConfiguration',
    right: [
      '',
      `jwt: [{issuer: {url: "https://i.example", discoveryURL: "https://d.example/x", audiences: [a, b], audienceMatchPolicy: MatchAny, egressSelectorType: cluster}, claimMappings: {username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: "x:"}, uid: {claim: uid}, extra: [{key: example.com/a, valueExpression: claims.a}]}, claimValidationRules: [{claim: hd, requiredValue: ""}, {expression: "true", message: m}], userValidationRules: [{expression: "true"}]}, {issuer: {url: "https://j.example", audiences: [a]}, claimMappings: {username: {expression: "claims.email"}}, claimValidationRules: [{expression: "claims.email_verified"}]}]
anonymous: {enabled: true, conditions: [{path: /livez}]}`,
    ],
    wrong: [
      [
        `jwt: [{issuer: {url: "http://i.example", audiences: []}, claimMappings: {username: {claim: sub}}}, {issuer: {url: "https://i", discoveryURL: "https://i", audiences: [a, b, a]}, claimMappings: {username: {}, groups: {prefix: x}, uid: {claim: a, expression: claims.b}, extra: [{key: Example.com/a, valueExpression: claims.x}, {key: a}, {key: x.k8s.io/a, valueExpression: claims.x}]}}, {}]
anonymous: {conditions: [{path: livez}]}`,
        'error: AuthenticationConfiguration.jwt[0].issuer.url: "http://i.example/": cannot be read: should be a URL that begins with https://, with a host, no user, query or fragment',
        'error: AuthenticationConfiguration.jwt[0].issuer.audiences: is empty: should be a list of at least 1',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.prefix: is missing beside claim: should be text, which may be empty',
        'error: AuthenticationConfiguration.jwt[1].issuer.audiences[2]: "a": is given twice',
        'error: AuthenticationConfiguration.jwt[1].issuer.discoveryURL: "https://i/": is the same as url',
        'error: AuthenticationConfiguration.jwt[1].issuer.audienceMatchPolicy: is missing, as there are several audiences: should be "MatchAny"',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.username: needs claim or expression',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.groups.prefix: "x": needs claim beside it',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.uid.expression: "claims.b": must not be given beside claim',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.extra[0].key: "Example.com/a": has capital letters',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.extra[1].valueExpression: is missing: should be text',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.extra[1].key: "a": cannot be read: should be a domain, a slash and a path',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.extra[2].key: "x.k8s.io/a": is of a domain that is reserved',
        'error: AuthenticationConfiguration.jwt[2].issuer: is missing: should be a mapping',
        'error: AuthenticationConfiguration.jwt[2].claimMappings: is missing: should be a mapping',
        'error: AuthenticationConfiguration.anonymous.enabled: is missing: should be true or false',
        'error: AuthenticationConfiguration.anonymous.conditions[0].path: "livez": cannot be read: should be an absolute path',
        'error: AuthenticationConfiguration.anonymous.conditions: means nothing as long as enabled is not true',
      ],
      [
        `jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: "", expression: claims.x}}, claimValidationRules: [{}, {claim: a, expression: claims.b}, {requiredValue: x, expression: claims.b}, {claim: a, message: m}], userValidationRules: [{expression: user.a}, {expression: user.a}, {message: m}]}, {issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {expression: claims.email}, uid: {}}}]
anonymous: {enabled: false, conditions: [{path: /a}, {path: /a}]}`,
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[0]: needs claim or expression',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[1].expression: "claims.b": must not be given beside claim',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[2].requiredValue: "x": needs claim beside it',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[3].message: "m": needs expression beside it',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.expression: "claims.x": must not be given beside claim',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[1].expression: "user.a": is given twice',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[2].expression: is missing: should be text',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.uid: needs claim or expression',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.username.expression: "claims.email": uses claims.email: should be used with claims.email_verified in some expression',
        'error: AuthenticationConfiguration.anonymous.conditions[1].path: "/a": is given twice',
        'error: AuthenticationConfiguration.anonymous.conditions: means nothing as long as enabled is not true',
        'error: AuthenticationConfiguration.jwt[1].issuer.url: "https://i/": is given twice',
      ],
      [
        'jwt: [{issuer: {url: "https://user:S3cr3t@i", audiences: [a]}, claimMappings: {username: {expression: claims.x, prefix: "y"}, groups: {}, uid: {}}}]',
        'error: AuthenticationConfiguration.jwt[0].issuer.url: "https://i/": cannot be read: should be a URL that begins with https://, with a host, no user, query or fragment',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.prefix: "y": needs claim beside it',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.uid: needs claim or expression',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {expression: "size(claims)"}, groups: {expression: "claims.groups +"}, uid: {expression: "user.uid"}, extra: [{key: x.example/a, valueExpression: "true"}]}, claimValidationRules: [{expression: "\'a\'"}], userValidationRules: [{expression: "claims.a == 1"}]}]',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.expression: "size(claims)": comes to int: should be an expression in CEL that comes to string',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.groups.expression: "claims.groups +": Unexpected token: EOF: should be an expression in CEL that comes to string or list',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.uid.expression: "user.uid": Unknown variable: user: should be an expression in CEL that comes to string',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.extra[0].valueExpression: "true": comes to bool: should be an expression in CEL that comes to string or list',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[0].expression: "\'a\'": comes to string: should be an expression in CEL that comes to bool',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[0].expression: "claims.a == 1": Unknown variable: claims: should be an expression in CEL that comes to bool',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    right: [
      'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w.conf}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "true"}]}}, {type: Node, name: node}, {type: RBAC, name: rbac}]',
    ],
    wrong: [
      ['authorizers: []', 'error: AuthorizationConfiguration.authorizers: is empty: should be a list of at least 1'],
      [
        'authorizers: [{type: Webhook, name: W}, {type: Node, name: a, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w.conf}}}, {type: Node, name: a}, {type: webhook, name: b}]',
        'error: AuthorizationConfiguration.authorizers[0].name: "W": cannot be read: should be a DNS name: labels of a-z, 0-9 and "-" with dots between',
        'error: AuthorizationConfiguration.authorizers[0].webhook: is missing, Webhook needs it',
        'error: AuthorizationConfiguration.authorizers[1].webhook: must not be given with Node',
        'error: AuthorizationConfiguration.authorizers[2].name: "a": is given twice',
        'error: AuthorizationConfiguration.authorizers[3].type: "webhook": has the wrong case: should be "Webhook"',
        'error: AuthorizationConfiguration.authorizers[2].type: "Node": is given twice',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 0s, timeout: 31s, subjectAccessReviewVersion: v2, failurePolicy: Allow, matchConditions: [{}, {expression: request.a}, {expression: request.a}], connectionInfo: {type: KubeConfigFile}}}, {type: Webhook, name: x, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig, kubeConfigFile: /etc/w.conf}}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.authorizedTTL: "0s": cannot be read: should be a duration above 0s',
        'error: AuthorizationConfiguration.authorizers[0].webhook.unauthorizedTTL: is missing: should be a duration above 0s',
        'error: AuthorizationConfiguration.authorizers[0].webhook.subjectAccessReviewVersion: "v2": is not known: should be "v1" or "v1beta1"',
        'error: AuthorizationConfiguration.authorizers[0].webhook.failurePolicy: "Allow": is not known: should be "NoOpinion" or "Deny"',
        'error: AuthorizationConfiguration.authorizers[0].webhook.connectionInfo.kubeConfigFile: is missing, KubeConfigFile needs it',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[0].expression: is missing: should be text',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[2].expression: "request.a": is given twice',
        'error: AuthorizationConfiguration.authorizers[0].webhook.timeout: "31s": is too long: should be at most 30s',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditionSubjectAccessReviewVersion: is missing beside matchConditions: should be "v1"',
        'error: AuthorizationConfiguration.authorizers[1].webhook.connectionInfo.kubeConfigFile: "/etc/w.conf": must not be given with InClusterConfig',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w.conf}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "request.a == 0"},{expression: "request.a == 1"},{expression: "request.a == 2"},{expression: "request.a == 3"},{expression: "request.a == 4"},{expression: "request.a == 5"},{expression: "request.a == 6"},{expression: "request.a == 7"},{expression: "request.a == 8"},{expression: "request.a == 9"},{expression: "request.a == 10"},{expression: "request.a == 11"},{expression: "request.a == 12"},{expression: "request.a == 13"},{expression: "request.a == 14"},{expression: "request.a == 15"},{expression: "request.a == 16"},{expression: "request.a == 17"},{expression: "request.a == 18"},{expression: "request.a == 19"},{expression: "request.a == 20"},{expression: "request.a == 21"},{expression: "request.a == 22"},{expression: "request.a == 23"},{expression: "request.a == 24"},{expression: "request.a == 25"},{expression: "request.a == 26"},{expression: "request.a == 27"},{expression: "request.a == 28"},{expression: "request.a == 29"},{expression: "request.a == 30"},{expression: "request.a == 31"},{expression: "request.a == 32"},{expression: "request.a == 33"},{expression: "request.a == 34"},{expression: "request.a == 35"},{expression: "request.a == 36"},{expression: "request.a == 37"},{expression: "request.a == 38"},{expression: "request.a == 39"},{expression: "request.a == 40"},{expression: "request.a == 41"},{expression: "request.a == 42"},{expression: "request.a == 43"},{expression: "request.a == 44"},{expression: "request.a == 45"},{expression: "request.a == 46"},{expression: "request.a == 47"},{expression: "request.a == 48"},{expression: "request.a == 49"},{expression: "request.a == 50"},{expression: "request.a == 51"},{expression: "request.a == 52"},{expression: "request.a == 53"},{expression: "request.a == 54"},{expression: "request.a == 55"},{expression: "request.a == 56"},{expression: "request.a == 57"},{expression: "request.a == 58"},{expression: "request.a == 59"},{expression: "request.a == 60"},{expression: "request.a == 61"},{expression: "request.a == 62"},{expression: "request.a == 63"},{expression: "request.a == 64"}]}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions: has 65 entries: should be a list of 0 to 64 entries',
      ],
    ],
  },
];
