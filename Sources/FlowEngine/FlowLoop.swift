@_exported public import FlowLoop
