# What node-gyp takes from the headers of a Node: here of none, as Node-API is the same in all of them. Its headers are of the package node-api-headers, which
# binding.gyp names, so that a build neither downloads anything nor depends on the Node that runs it.
{
  'target_defaults': {
    'default_configuration': 'Release',
    'configurations': { 'Debug': {}, 'Release': {} },
    'cflags': [ '-pthread', '-fno-omit-frame-pointer' ],
    'cflags_cc': [ '-fno-rtti' ],
    'ldflags': [ '-pthread' ],
  },
}
