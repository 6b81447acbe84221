import type { Golden } from './golden.js';

/** Kinds of what stands around the documents: the files of admission plugins and of the node agent. */
export const ECOSYSTEM: readonly Golden[] = [
  {
    apiVersion: 'kubelet.config.k8s.io/v1',
    kind: 'CredentialProviderConfig',
    right: [
      'providers: [{name: ecr, matchImages: ["*.dkr.ecr.*.amazonaws.com", "registry.io:8080/path"], defaultCacheDuration: 12h, apiVersion: credentialprovider.kubelet.k8s.io/v1, args: [get], env: [{name: A, value: S3cr3t}], tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [a.example/x], optionalServiceAccountAnnotationKeys: [yy]}}]',
    ],
    wrong: [
      ['providers: []', 'error: CredentialProviderConfig.providers: is empty: should be a list of at least 1'],
      [
        'providers: [{name: a/b, matchImages: [], apiVersion: v1}, {name: "..", matchImages: ["https://a", "a b"], defaultCacheDuration: -1s, apiVersion: credentialprovider.kubelet.k8s.io/v1beta1, tokenAttributes: {cacheType: token, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [a, a], optionalServiceAccountAnnotationKeys: ["b c", a]}}, {name: "..", matchImages: [a], defaultCacheDuration: 0s, apiVersion: credentialprovider.kubelet.k8s.io/v1, env: [{value: S3cr3t}]}]',
        'error: CredentialProviderConfig.providers[0].name: "a/b": cannot be read: should be a name of a program, without slash and spaces',
        'error: CredentialProviderConfig.providers[0].matchImages: is empty: should be a list of at least 1',
        'error: CredentialProviderConfig.providers[0].defaultCacheDuration: is missing: should be a duration of at least 0s',
        'error: CredentialProviderConfig.providers[0].apiVersion: "v1": is not known: should be "credentialprovider.kubelet.k8s.io/v1" or "credentialprovider.kubelet.k8s.io/v1beta1" or "credentialprovider.kubelet.k8s.io/v1alpha1"',
        'error: CredentialProviderConfig.providers[1].name: "..": cannot be read: should be a name of a program, without slash and spaces',
        'error: CredentialProviderConfig.providers[1].matchImages[0]: "https://a/": cannot be read: should be images without a scheme, such as *.example.com:5000/team',
        'error: CredentialProviderConfig.providers[1].matchImages[1]: "a b": cannot be read: should be images without a scheme, such as *.example.com:5000/team',
        'error: CredentialProviderConfig.providers[1].defaultCacheDuration: "-1s": cannot be read: should be a duration of at least 0s',
        'error: CredentialProviderConfig.providers[1].tokenAttributes.serviceAccountTokenAudience: is missing: should be text',
        'error: CredentialProviderConfig.providers[1].tokenAttributes.cacheType: "token": has the wrong case: should be "Token"',
        'error: CredentialProviderConfig.providers[1].tokenAttributes.requiredServiceAccountAnnotationKeys[1]: "a": is given twice',
        'error: CredentialProviderConfig.providers[1].tokenAttributes.optionalServiceAccountAnnotationKeys[0]: "b c": cannot be read: should be a name of an annotation, such as "example.com/role"',
        'error: CredentialProviderConfig.providers[1].tokenAttributes.requiredServiceAccountAnnotationKeys: needs requireServiceAccount true',
        'error: CredentialProviderConfig.providers[1].tokenAttributes.optionalServiceAccountAnnotationKeys[0]: is among the required ones, too',
        'error: CredentialProviderConfig.providers[1].tokenAttributes: needs apiVersion credentialprovider.kubelet.k8s.io/v1',
        'error: CredentialProviderConfig.providers[2].name: "..": cannot be read: should be a name of a program, without slash and spaces',
        'error: CredentialProviderConfig.providers[2].env[0].name: is missing: should be text',
      ],
    ],
  },
  {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'CredentialProviderConfig',
    right: [
      'providers: [{name: a, matchImages: [a.example], defaultCacheDuration: 0s, apiVersion: credentialprovider.kubelet.k8s.io/v1beta1}]',
    ],
    wrong: [
      [
        'providers: [{name: a, matchImages: [a.example], defaultCacheDuration: 0s, apiVersion: credentialprovider.kubelet.k8s.io/v1, tokenAttributes: {}}]',
        'error: CredentialProviderConfig.providers[0].tokenAttributes: is no field of v1beta1: should be used in v1',
      ],
    ],
  },
  {
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    right: [
      '',
      'defaults: {enforce: baseline, enforce-version: latest, audit: restricted, audit-version: v1.36, warn: privileged, warn-version: v1.0}\nexemptions: {usernames: [a], namespaces: [kube-system], runtimeClasses: [kata.v1]}',
    ],
    wrong: [
      [
        'defaults: {enforce: Baseline, audit-version: "1.36"}\nexemptions: {usernames: [""], namespaces: [Kube, a, a], runtimeClasses: ["a b"], groups: [a]}',
        'error: PodSecurityConfiguration.defaults.enforce: "Baseline": has the wrong case: should be "baseline"',
        'error: PodSecurityConfiguration.defaults.audit-version: "1.36": cannot be read: should be "latest" or a version such as "v1.36"',
        'error: PodSecurityConfiguration.exemptions.namespaces[0]: "Kube": cannot be read: should be a DNS label: at most 63 of a-z, 0-9 and "-"',
        'error: PodSecurityConfiguration.exemptions.namespaces[2]: "a": is given twice',
        'error: PodSecurityConfiguration.exemptions.runtimeClasses[0]: "a b": cannot be read: should be a DNS name: labels of a-z, 0-9 and "-" with dots between',
        'error: PodSecurityConfiguration.exemptions.groups: is an unknown field',
        'error: PodSecurityConfiguration.exemptions.usernames[0]: is empty',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'WebhookAdmissionConfiguration',
    right: ['kubeConfigFile: /etc/webhooks.conf'],
    wrong: [
      [
        'kubeconfigFile: /etc/webhooks.conf',
        'error: WebhookAdmissionConfiguration.kubeconfigFile: has the wrong case: should be kubeConfigFile',
      ],
      [
        'kubeConfigFile: webhooks.conf\nstaticManifestsDir: /etc/webhooks.d',
        'error: WebhookAdmissionConfiguration.kubeConfigFile: "webhooks.conf": cannot be read: should be an absolute path',
        'warning: WebhookAdmissionConfiguration.staticManifestsDir: "/etc/webhooks.d": needs --feature-gates=ManifestBasedAdmissionControlConfig=true',
      ],
    ],
  },
  ...['ValidatingAdmissionPolicyConfiguration', 'MutatingAdmissionPolicyConfiguration'].map((kind) => ({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind,
    right: [''],
    wrong: [
      [
        'staticManifestsDir: policies.d',
        `warning: ${kind}.staticManifestsDir: "policies.d": needs --feature-gates=ManifestBasedAdmissionControlConfig=true`,
        `error: ${kind}.staticManifestsDir: "policies.d": cannot be read: should be an absolute path`,
      ],
      [
        'staticManifestsDir: /etc/policies.d',
        `warning: ${kind}.staticManifestsDir: "/etc/policies.d": needs --feature-gates=ManifestBasedAdmissionControlConfig=true`,
      ],
    ] as const,
  })),
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'ResourceQuotaConfiguration',
    right: [
      'limitedResources: [{apiGroup: "", resource: pods, matchContains: [pods], matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}, {scopeName: BestEffort, operator: Exists}]}]',
    ],
    wrong: [
      [
        'limitedResources: [{matchScopes: [{scopeName: Priority, operator: In}, {scopeName: PriorityClass, operator: Exists, values: [a]}]}]',
        'error: ResourceQuotaConfiguration.limitedResources[0].resource: is missing: should be text',
        'error: ResourceQuotaConfiguration.limitedResources[0].matchScopes[0].scopeName: "Priority": is not known: should be "Terminating" or "NotTerminating" or "BestEffort" or "NotBestEffort" or "PriorityClass" or "CrossNamespacePodAffinity" or "VolumeAttributesClass"',
        'error: ResourceQuotaConfiguration.limitedResources[0].matchScopes[0].values: is missing, the operator needs it',
        'error: ResourceQuotaConfiguration.limitedResources[0].matchScopes[1].values: must not be given with Exists',
      ],
    ],
  },
  {
    apiVersion: 'resourcequota.admission.k8s.io/v1beta1',
    kind: 'Configuration',
    right: ['limitedResources: [{resource: pods}]'],
    wrong: [
      ['limitedresources: []', 'error: Configuration.limitedresources: has the wrong case: should be limitedResources'],
    ],
  },
  {
    apiVersion: 'imagepolicy.k8s.io/v1alpha1',
    kind: 'ImagePolicyWebhookConfiguration',
    right: ['imagePolicy: {kubeConfigFile: /a, allowTTL: 50, denyTTL: -1, retryBackoff: 500, defaultAllow: true}'],
    wrong: [
      [
        'imagePolicy: {allowTTL: 1801, denyTTL: -2, retryBackoff: 300001, defaultAllow: "yes"}',
        'error: ImagePolicyWebhookConfiguration.imagePolicy.kubeConfigFile: is missing: should be text',
        'error: ImagePolicyWebhookConfiguration.imagePolicy.defaultAllow: "yes": has the wrong type: should be true or false',
        'error: ImagePolicyWebhookConfiguration.imagePolicy.allowTTL: 1801: is out of range: should be an integer from 1 to 1800, or -1 for none',
        'error: ImagePolicyWebhookConfiguration.imagePolicy.denyTTL: -2: is out of range: should be an integer from 1 to 1800, or -1 for none',
        'error: ImagePolicyWebhookConfiguration.imagePolicy.retryBackoff: 300001: is out of range: should be an integer from 1 to 300000, or -1 for none',
      ],
    ],
  },
  {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'DynamicResourcesArgs',
    right: ['filterTimeout: 0s\nbindingTimeout: 10m'],
    wrong: [
      [
        'filterTimeout: -1s\nbindingTimeout: 500ms\ntimeout: 1s',
        'error: DynamicResourcesArgs.filterTimeout: "-1s": cannot be read: should be a duration of at least 0s',
        'error: DynamicResourcesArgs.bindingTimeout: "500ms": is out of range: should be a duration of at least 1s',
        'error: DynamicResourcesArgs.timeout: is an unknown field',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.k8s.io/v1beta1',
    kind: 'TracingConfiguration',
    right: [],
    wrong: [
      [
        '',
        'warning: TracingConfiguration.apiVersion: "apiserver.k8s.io/v1beta1": is a version of reference documents that no component reads',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1beta1',
    kind: 'EgressSelectorConfiguration',
    right: [],
    wrong: [
      [
        'egressSelections: []',
        'error: apiVersion: "apiserver.config.k8s.io/v1beta1 EgressSelectorConfiguration": is a version that is not known: should be "apiserver.k8s.io/v1alpha1" or "apiserver.k8s.io/v1beta1"',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1alpha1',
    kind: 'AdmissionConfiguration',
    right: [],
    wrong: [
      [
        'plugins: []',
        'error: apiVersion: "apiserver.config.k8s.io/v1alpha1 AdmissionConfiguration": is a version that is not known: should be "apiserver.config.k8s.io/v1" or "apiserver.k8s.io/v1alpha1"',
      ],
    ],
  },
  {
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'AdmissionConfiguration',
    right: [
      'plugins: [{name: ImagePolicyWebhook, configuration: {imagePolicy: {kubeConfigFile: /a}}}]',
      'plugins: [{name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration}}, {name: EventRateLimit, configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Server, qps: 1, burst: 1}]}}]',
    ],
    wrong: [
      [
        'plugins: [{name: PodSecurity, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ResourceQuotaConfiguration}}, {name: EventRateLimit, configuration: {apiVersion: resourcequota.admission.k8s.io/v1beta1, kind: Configuration}}]',
        'error: AdmissionConfiguration.plugins[0].configuration.kind: "apiserver.config.k8s.io/v1 ResourceQuotaConfiguration": is not the kind that belongs here: should be "pod-security.admission.config.k8s.io PodSecurityConfiguration"',
        'error: AdmissionConfiguration.plugins[1].configuration.kind: "resourcequota.admission.k8s.io/v1beta1 Configuration": is not the kind that belongs here: should be "eventratelimit.admission.k8s.io Configuration"',
      ],
      [
        'plugins: [{name: ImagePolicyWebhook, configuration: {imagePolicy: {}}}, {name: PodSecurity, configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: none}}}, {name: Mine, configuration: {apiVersion: example.com/v1, kind: Mine}}, {name: ResourceQuota, configuration: {apiVersion: apiserver.config.k8s.io/v2, kind: ResourceQuotaConfiguration}}]',
        'error: AdmissionConfiguration.plugins[0].configuration.imagePolicy.kubeConfigFile: is missing: should be text',
        'error: AdmissionConfiguration.plugins[1].configuration.defaults.enforce: "none": is not known: should be "privileged" or "baseline" or "restricted"',
        'warning: AdmissionConfiguration.plugins[2].configuration.apiVersion: "example.com/v1 Mine": is a kind that is not known here: it was not checked',
        'error: AdmissionConfiguration.plugins[3].configuration.apiVersion: "apiserver.config.k8s.io/v2 ResourceQuotaConfiguration": is a version that is not known: should be "apiserver.config.k8s.io/v1"',
      ],
    ],
  },
];
