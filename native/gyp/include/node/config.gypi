# Beside common.gypi node-gyp reads how that Node was configured.
{ 'variables': {}, 'target_defaults': {} }
