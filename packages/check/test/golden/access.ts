import type { Golden } from './golden.js';

export const ACCESS: readonly Golden[] = [
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthenticationConfiguration',
    right: [
      'jwt: [{issuer: {url: "https://i", audiences: [a], certificateAuthority: "-----BEGIN CERTIFICATE-----\\nMIIBfzCCASWgAwIBAgIUeteQZI80L68fVyyAoNHlfdUw8OUwCgYIKoZIzj0EAwIw\\nFDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyMzE5MDMyOFoYDzIxMjYxMDMw\\nMTkwMzI4WjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO\\nPQMBBwNCAAQrHxz0p0m0hCePO5HsR6zXO071vSqFSZ6qdlpNvL6QARmb+T0OnG5R\\no5EHOmn9YOlVZ+mrsqkzz7AseAI5I32Ro1MwUTAdBgNVHQ4EFgQUfP78DhwxE9pH\\nWNYY4mE7jqZl+2AwHwYDVR0jBBgwFoAUfP78DhwxE9pHWNYY4mE7jqZl+2AwDwYD\\nVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiApnGM5OiM5E58b4XOZFEBE\\nS3qXMLzQVifHzMRTCAhiywIhAJIjsQBfBuzC/6SGMZ7czBoeTUxD3xRBHrjF1izH\\n8XYK\\n-----END CERTIFICATE-----\\n"}, claimMappings: {username: {claim: sub, prefix: ""}}, userValidationRules: [{expression: "user.groups.all(g, g != \'system:masters\') && !user.username.startsWith(\'system:\')"}], claimValidationRules: [{expression: "claims.aud == \'a\' && claims.exists(k, k == \'hd\')"}]}]',
    ],
    wrong: [
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a], certificateAuthority: S3cr3t}, claimMappings: {username: {claim: sub, prefix: ""}}}]',
        'error: AuthenticationConfiguration.jwt[0].issuer.certificateAuthority: has no certificate: should be certificates in PEM',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ""}}, claimValidationRules: [{expression: claims.admin}, {expression: "claims.roles.exists(r, r == \'x\')"}, {claim: a}, {claim: a}, {expression: "claims.a == 1"}, {expression: "claims.a == 1"}], userValidationRules: [{expression: "user.nosuch == \'a\'"}, {expression: user.username}]}]',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[0].expression: "claims.admin": evaluates to a type that is not known: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[1].expression: "claims.roles.exists(r, r == \'x\')": goes through a value of claims, whose type is not known: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[0].expression: "user.nosuch == \'a\'": No such key: nosuch: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[1].expression: "user.username": evaluates to string: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[3].claim: "a": is given twice',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[5].expression: "claims.a == 1": is given twice',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ""}}, claimValidationRules: [{expression: "isURL(claims.a) && \'abc\'.find(\'b\') == \'b\'"}]}]',
        "warning: AuthenticationConfiguration.jwt[0].claimValidationRules[0].expression: \"isURL(claims.a) && 'abc'.find('b') == 'b'\": was not checked, as a function is not known here: found no matching overload for 'isURL(dyn)'",
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    right: [
      'authorizers: [{type: Webhook, name: w, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "has(request.resourceAttributes) && request.resourceAttributes.namespace == \'a\'"}]}}]',
      'authorizers: [{type: Webhook, name: w, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "!(\'system:masters\' in request.groups)"}]}}]',
    ],
    wrong: [
      [
        'authorizers: [{type: Webhook, name: w, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "request.nosuch == \'a\'"}]}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[0].expression: "request.nosuch == \'a\'": No such key: nosuch: should be an expression in CEL that evaluates to bool',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "request.user == \'u1\'\"}]}}]',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "request.resourceAttributes.verbs == \'get\'"}]}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[0].expression: "request.resourceAttributes.verbs == \'get\'": No such key: verbs: should be an expression in CEL that evaluates to bool',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthenticationConfiguration',
    right: [
      '',
      `jwt: [{issuer: {url: "https://i.example", discoveryURL: "https://d.example/x", audiences: [a, b], audienceMatchPolicy: MatchAny, egressSelectorType: cluster}, claimMappings: {username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: "x:"}, uid: {claim: uid}, extra: [{key: example.com/a, valueExpression: claims.a}]}, claimValidationRules: [{claim: hd, requiredValue: ""}, {expression: "true", message: m}], userValidationRules: [{expression: "true"}]}, {issuer: {url: "https://j.example", audiences: [a]}, claimMappings: {username: {expression: "claims.email"}}, claimValidationRules: [{expression: "claims.email_verified == true"}]}]
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
        'error: AuthenticationConfiguration.anonymous.conditions: has no effect unless enabled is true',
      ],
      [
        `jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: "", expression: claims.x}}, claimValidationRules: [{}, {claim: a, expression: claims.b}, {requiredValue: x, expression: claims.b}, {claim: a, message: m}], userValidationRules: [{expression: user.a}, {expression: user.a}, {message: m}]}, {issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {expression: claims.email}, uid: {}}}]
anonymous: {enabled: false, conditions: [{path: /a}, {path: /a}]}`,
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[0]: needs claim or expression',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[1].expression: "claims.b": must not be given beside claim',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[1].expression: "claims.b": evaluates to a type that is not known: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[2].requiredValue: "x": needs claim beside it',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[2].expression: "claims.b": evaluates to a type that is not known: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[3].message: "m": needs expression beside it',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.expression: "claims.x": must not be given beside claim',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[0].expression: "user.a": No such key: a: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[1].expression: "user.a": No such key: a: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[1].expression: "user.a": is given twice',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[2].expression: is missing: should be text',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[3].claim: "a": is given twice',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[2].expression: "claims.b": is given twice',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.uid: needs claim or expression',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.username.expression: "claims.email": uses claims.email: should be used with claims.email_verified in some expression',
        'error: AuthenticationConfiguration.anonymous.conditions[1].path: "/a": is given twice',
        'error: AuthenticationConfiguration.anonymous.conditions: has no effect unless enabled is true',
        'error: AuthenticationConfiguration.jwt[1].issuer.url: "https://i/": is given twice',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ""}, groups: {expression: "claims.groups.map(g, \'x:\' + g)"}, extra: [{key: x.example/a, valueExpression: "claims.a.b.filter(x, true)"}]}}]',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.groups.expression: "claims.groups.map(g, \'x:\' + g)": goes through a value of claims, whose type is not known: should be an expression in CEL that evaluates to string or list of string',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.extra[0].valueExpression: "claims.a.b.filter(x, true)": goes through a value of claims, whose type is not known: should be an expression in CEL that evaluates to string or list of string',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {expression: "claims.?a.optMap(x, x).orValue(\'a\')"}}, claimValidationRules: [{expression: "sets.contains([\'a\'], [claims.a])"}]}]',
        'warning: AuthenticationConfiguration.jwt[0].claimMappings.username.expression: "claims.?a.optMap(x, x).orValue(\'a\')": was not checked, as a function is not known here: Unknown variable: x',
        'warning: AuthenticationConfiguration.jwt[0].claimValidationRules[0].expression: "sets.contains([\'a\'], [claims.a])": was not checked, as a function is not known here: Unknown variable: sets',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {expression: "claims.sub.mine(\'isURL(a)\')"}}}, {issuer: {url: "https://j", audiences: [a]}, claimMappings: {username: {expression: "isURL(claims.sub) ? claims.sub : \'\'", prefix: ""}}}]',
        "error: AuthenticationConfiguration.jwt[0].claimMappings.username.expression: \"claims.sub.mine('isURL(a)')\": found no matching overload for 'dyn.mine(string)': should be an expression in CEL that evaluates to string",
        'error: AuthenticationConfiguration.jwt[1].claimMappings.username.prefix: "": must not be given beside expression',
        "warning: AuthenticationConfiguration.jwt[1].claimMappings.username.expression: \"isURL(claims.sub) ? claims.sub : ''\": was not checked, as a function is not known here: found no matching overload for 'isURL(dyn)'",
      ],
      [
        'jwt: [{issuer: {url: "https://i ", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ""}}}, {issuer: {url: "https:j", audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ""}}}]',
        'error: AuthenticationConfiguration.jwt[0].issuer.url: "https://i/": cannot be read: should be a URL that begins with https://, with a host, no user, query or fragment',
        'error: AuthenticationConfiguration.jwt[1].issuer.url: "https://j/": cannot be read: should be a URL that begins with https://, with a host, no user, query or fragment',
      ],
      [
        'jwt: [{issuer: {url: "https://user:S3cr3t@i", audiences: [a]}, claimMappings: {username: {expression: claims.x, prefix: "y"}, groups: {}, uid: {}}}]',
        'error: AuthenticationConfiguration.jwt[0].issuer.url: "https://i/": cannot be read: should be a URL that begins with https://, with a host, no user, query or fragment',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.prefix: "y": must not be given beside expression',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.uid: needs claim or expression',
      ],
      [
        'jwt: [{issuer: {url: "https://i", discoveryURL: "https://d", audiences: [""]}, claimMappings: {username: {claim: a, prefix: ""}, groups: {claim: g, expression: claims.g}, extra: [{key: "a.example/x y", valueExpression: claims.a}, {key: b.example/x, valueExpression: claims.a}, {key: b.example/x, valueExpression: claims.a}]}}, {issuer: {url: "https://j", discoveryURL: "https://d", audiences: [a]}, claimMappings: {}}]',
        'error: AuthenticationConfiguration.jwt[0].issuer.audiences[0]: is empty',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.groups.expression: "claims.g": must not be given beside claim',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.groups.prefix: is missing beside claim: should be text, which may be empty',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.extra[0].key: "a.example/x y": cannot be read: should be a domain, a slash and a path',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.extra[2].key: "b.example/x": is given twice',
        'error: AuthenticationConfiguration.jwt[1].claimMappings.username: is missing: should be a mapping',
        'error: AuthenticationConfiguration.jwt[1].issuer.discoveryURL: "https://d/": is given twice',
      ],
      [
        'jwt: [{issuer: {url: "https://i", audiences: [a]}, claimMappings: {username: {expression: "size(claims)"}, groups: {expression: "claims.groups +"}, uid: {expression: "user.uid"}, extra: [{key: x.example/a, valueExpression: "true"}]}, claimValidationRules: [{expression: "\'a\'"}], userValidationRules: [{expression: "claims.a == 1"}]}]',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.username.expression: "size(claims)": evaluates to int: should be an expression in CEL that evaluates to string',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.groups.expression: "claims.groups +": Unexpected token: EOF: should be an expression in CEL that evaluates to string or list of string',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.uid.expression: "user.uid": Unknown variable: user: should be an expression in CEL that evaluates to string',
        'error: AuthenticationConfiguration.jwt[0].claimMappings.extra[0].valueExpression: "true": evaluates to bool: should be an expression in CEL that evaluates to string or list of string',
        'error: AuthenticationConfiguration.jwt[0].claimValidationRules[0].expression: "\'a\'": evaluates to string: should be an expression in CEL that evaluates to bool',
        'error: AuthenticationConfiguration.jwt[0].userValidationRules[0].expression: "claims.a == 1": Unknown variable: claims: should be an expression in CEL that evaluates to bool',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AuthorizationConfiguration',
    right: [
      'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w.conf}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "true"}, {expression: "request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == \'a\' && r.values == [\'b\'])"}, {expression: "request.resourceAttributes.labelSelector.requirements[0].operator == \'In\'"}]}}, {type: Node, name: node}, {type: RBAC, name: rbac}]',
    ],
    wrong: [
      ['authorizers: []', 'error: AuthorizationConfiguration.authorizers: is empty: should be a list of at least 1'],
      [
        'authorizers: [{type: Node, name: a.b}, {type: RBAC, name: a-b}]',
        'error: AuthorizationConfiguration.authorizers[0].name: "a.b": cannot be read: should be a DNS label: at most 63 of a-z, 0-9 and "-"',
      ],
      [
        'authorizers: [{type: Webhook, name: W}, {type: Node, name: a, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w.conf}}}, {type: Node, name: a}, {type: webhook, name: b}]',
        'error: AuthorizationConfiguration.authorizers[0].name: "W": cannot be read: should be a DNS label: at most 63 of a-z, 0-9 and "-"',
        'error: AuthorizationConfiguration.authorizers[0].webhook: is missing, Webhook needs it',
        'error: AuthorizationConfiguration.authorizers[1].webhook: must not be given with Node',
        'error: AuthorizationConfiguration.authorizers[2].name: "a": is given twice',
        'error: AuthorizationConfiguration.authorizers[3].type: "webhook": has the wrong case: should be "Webhook"',
        'error: AuthorizationConfiguration.authorizers[2].type: "Node": is given twice',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 0s, timeout: 31s, subjectAccessReviewVersion: v2, failurePolicy: Allow, matchConditions: [{}, {expression: request.a}, {expression: request.a}], connectionInfo: {type: KubeConfigFile}}}, {type: Webhook, name: x, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: InClusterConfig, kubeConfigFile: /etc/w.conf}}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.timeout: "31s": is out of range: should be a duration above 0s, at most 30s',
        'error: AuthorizationConfiguration.authorizers[0].webhook.subjectAccessReviewVersion: "v2": is not known: should be "v1" or "v1beta1"',
        'error: AuthorizationConfiguration.authorizers[0].webhook.failurePolicy: "Allow": is not known: should be "NoOpinion" or "Deny"',
        'error: AuthorizationConfiguration.authorizers[0].webhook.connectionInfo.kubeConfigFile: is missing, KubeConfigFile needs it',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[0].expression: is missing: should be text',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[1].expression: "request.a": No such key: a: should be an expression in CEL that evaluates to bool',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[2].expression: "request.a": No such key: a: should be an expression in CEL that evaluates to bool',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[2].expression: "request.a": is given twice',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditionSubjectAccessReviewVersion: is missing beside matchConditions: should be "v1"',
        'error: AuthorizationConfiguration.authorizers[1].webhook.connectionInfo.kubeConfigFile: "/etc/w.conf": must not be given with InClusterConfig',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfig}, matchConditionSubjectAccessReviewVersion: v1beta1, matchConditions: [{expression: "size(request.a)"}]}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditionSubjectAccessReviewVersion: "v1beta1": is not known: should be "v1"',
        'error: AuthorizationConfiguration.authorizers[0].webhook.connectionInfo.type: "KubeConfig": is not known: should be "KubeConfigFile" or "InClusterConfig"',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions[0].expression: "size(request.a)": evaluates to int: should be an expression in CEL that evaluates to bool',
      ],
      [
        'authorizers: [{type: Webhook, name: w, webhook: {authorizedTTL: 5m, unauthorizedTTL: 30s, timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w.conf}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: "request.user == \'u0\'\"},{expression: "request.user == \'u1\'\"},{expression: "request.user == \'u2\'\"},{expression: "request.user == \'u3\'\"},{expression: "request.user == \'u4\'\"},{expression: "request.user == \'u5\'\"},{expression: "request.user == \'u6\'\"},{expression: "request.user == \'u7\'\"},{expression: "request.user == \'u8\'\"},{expression: "request.user == \'u9\'\"},{expression: "request.user == \'u10\'\"},{expression: "request.user == \'u11\'\"},{expression: "request.user == \'u12\'\"},{expression: "request.user == \'u13\'\"},{expression: "request.user == \'u14\'\"},{expression: "request.user == \'u15\'\"},{expression: "request.user == \'u16\'\"},{expression: "request.user == \'u17\'\"},{expression: "request.user == \'u18\'\"},{expression: "request.user == \'u19\'\"},{expression: "request.user == \'u20\'\"},{expression: "request.user == \'u21\'\"},{expression: "request.user == \'u22\'\"},{expression: "request.user == \'u23\'\"},{expression: "request.user == \'u24\'\"},{expression: "request.user == \'u25\'\"},{expression: "request.user == \'u26\'\"},{expression: "request.user == \'u27\'\"},{expression: "request.user == \'u28\'\"},{expression: "request.user == \'u29\'\"},{expression: "request.user == \'u30\'\"},{expression: "request.user == \'u31\'\"},{expression: "request.user == \'u32\'\"},{expression: "request.user == \'u33\'\"},{expression: "request.user == \'u34\'\"},{expression: "request.user == \'u35\'\"},{expression: "request.user == \'u36\'\"},{expression: "request.user == \'u37\'\"},{expression: "request.user == \'u38\'\"},{expression: "request.user == \'u39\'\"},{expression: "request.user == \'u40\'\"},{expression: "request.user == \'u41\'\"},{expression: "request.user == \'u42\'\"},{expression: "request.user == \'u43\'\"},{expression: "request.user == \'u44\'\"},{expression: "request.user == \'u45\'\"},{expression: "request.user == \'u46\'\"},{expression: "request.user == \'u47\'\"},{expression: "request.user == \'u48\'\"},{expression: "request.user == \'u49\'\"},{expression: "request.user == \'u50\'\"},{expression: "request.user == \'u51\'\"},{expression: "request.user == \'u52\'\"},{expression: "request.user == \'u53\'\"},{expression: "request.user == \'u54\'\"},{expression: "request.user == \'u55\'\"},{expression: "request.user == \'u56\'\"},{expression: "request.user == \'u57\'\"},{expression: "request.user == \'u58\'\"},{expression: "request.user == \'u59\'\"},{expression: "request.user == \'u60\'\"},{expression: "request.user == \'u61\'\"},{expression: "request.user == \'u62\'\"},{expression: "request.user == \'u63\'\"},{expression: "request.user == \'u64\'\"}]}}]',
        'error: AuthorizationConfiguration.authorizers[0].webhook.matchConditions: has 65 entries: should be a list of 0 to 64 entries',
      ],
    ],
  },
];
