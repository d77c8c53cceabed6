// A chain of Foundation operations that do nothing, each dependent on the one before. Prints the ns
// of time and of CPU time of an operation, from handing them to the queue until the last has ended; making them isn't counted.
//
//   operation_queue COUNT

import Foundation

guard CommandLine.arguments.count == 2, let count = Int(CommandLine.arguments[1]), count > 0 else {
  print("usage: operation_queue COUNT")
  exit(2)
}

let queue = OperationQueue()
queue.maxConcurrentOperationCount = 1
var operations: [Operation] = []
for _ in 0..<count {
  let operation = BlockOperation {}
  if let previous = operations.last {
    operation.addDependency(previous)
  }
  operations.append(operation)
}
let begun = clock()
let elapsed = ContinuousClock().measure {
  queue.addOperations(operations, waitUntilFinished: true)
}
let used = Double(clock() - begun) / Double(CLOCKS_PER_SEC)
print(elapsed / .nanoseconds(1) / Double(count), used * 1e9 / Double(count))
// Releasing a chain of this length would recurse through it.
exit(0)
