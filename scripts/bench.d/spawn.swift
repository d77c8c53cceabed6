// Starts two commands in turn, A B A B, and prints the median time of each in microseconds.
//
//   spawn ROUNDS PROGRAM_A PROGRAM_B ARGUMENT

import Glibc

let arguments = CommandLine.arguments
guard arguments.count == 5, let rounds = Int(arguments[1]), rounds > 0 else {
  print("usage: spawn ROUNDS PROGRAM_A PROGRAM_B ARGUMENT")
  exit(2)
}

func timeOfOneRun(of program: String) -> Double {
  var identifier = pid_t()
  var status: Int32 = 0
  var argv = [strdup(program), strdup(arguments[4]), nil]
  defer { argv.forEach { free($0) } }
  let clock = ContinuousClock()
  let begun = clock.now
  guard posix_spawnp(&identifier, program, nil, nil, &argv, environ) == 0,
    waitpid(identifier, &status, 0) == identifier, status == 0
  else {
    print("\(program) failed")
    exit(1)
  }
  return (clock.now - begun) / .microseconds(1)
}

var times: [[Double]] = [[], []]
for _ in 0..<rounds {
  for side in 0...1 {
    times[side].append(timeOfOneRun(of: arguments[2 + side]))
  }
}
for side in 0...1 {
  print(times[side].sorted()[rounds / 2])
}
