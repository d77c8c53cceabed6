// The C library and the calls of CFlowSystem, for all modules: only this one and FlowBytes know which library it is. The
// files Linux….swift say what else is Linux's; those of another system would stand beside them.
#if canImport(Glibc)
  @_exported public import Glibc
#else
  #error("flowlua needs the GNU C library")
#endif
@_exported public import CFlowSystem
