internal import CFlowSystem

/// Replaces the function by which Swift's `CommandLine` asks for the arguments of the process.
///
/// The object of the runtime's archive that has the function also has an initialiser, which reads the 50 lines of
/// /proc/self/maps at each start, to find arguments that the C library has handed over already: a tenth of the time of a
/// start. A linker takes an object from an archive only for a name that nothing else has, so that object stays out of
/// the program. In debug builds, whose runtime is a shared library, it stays in.
@c(_swift_stdlib_getUnsafeArgvArgc)
func runtimeArguments(
  _ count: UnsafeMutablePointer<Int32>
) -> UnsafePointer<UnsafeMutablePointer<CChar>?>? {
  flowsystem_arguments(count)
}
