@_exported public import FlowBytes
