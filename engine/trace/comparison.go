// SPDX-License-Identifier: Apache-2.0

package trace

import "time"

// Comparison is the stacks of many targets as one tree, and the classes of targets whose stacks are
// alike. It does not depend on the order in which the targets were read.
type Comparison struct {
	// ByThread is true where each target is one thread of a process.
	ByThread bool
	// CrashedOnly is true where only threads that crashed are compared. Targets of which no thread did are a class
	// without stacks.
	CrashedOnly bool
	// Targets are in the order of their labels and paths, numbers in them by their values.
	Targets []ComparedTarget
	// Classes are the classes of targets, the smallest first; of threads, those that no other thread has the role of
	// are behind the others, and the largest is the last. Of equally large ones the first is the
	// one whose rarest stack the fewest other targets have, or that has not a stack that almost all others have; then the
	// one to which something happened; then the one that parts from the others the furthest out.
	Classes []TargetClass
	// Functions is the tree of stacks by functions, Lines the one by lines. A parent precedes its
	// children, which are in the order of their functions and lines.
	Functions, Lines []CallNode
	// Modules are the modules of which targets have different builds, by name.
	Modules []ModuleBuilds
	// Collectives are the collective operations that ranks wait in or have not entered, as flight
	// recorders have them.
	Collectives []Collective
	// Problems are about the comparison as a whole: two targets of one rank, clocks that differ. Each
	// is a sentence.
	Problems []string
}

// ComparedTarget is a target of a comparison.
type ComparedTarget struct {
	// Path is where its stacks were read: of several moments the first one's.
	Path string
	// Labels are names and values: rank, host, pod, local_rank and others. Where threads are compared, thread
	// is the ID of the thread.
	Labels map[string]string
	// PID is the process ID; 0: it is not known.
	PID int64
	// Moments are when its stacks were taken, in order, without moments that are not known. Count is
	// how many times they were taken.
	Moments []time.Time
	Count   int
	// Class is an index in Comparison.Classes, Variant one in its Variants.
	Class, Variant int
	// Threads is how many threads have a stack, at its last moment.
	Threads int
	// Problems are its own, each a sentence.
	Problems []string
}

// TargetClass is the targets whose stacks are alike by functions: to each thread of a role the same
// stacks, the same facts, the same builds of the modules in them. How many threads have one stack
// does not count.
type TargetClass struct {
	// Targets are indices in Comparison.Targets, in order.
	Targets []int
	// Labels has, for each label that a target of the class has, all values in short: "0-5,7".
	Labels map[string]string
	// Unread is why the targets could not be read; "": they were. Such a class has no stacks.
	Unread string
	// Facts are about each target: "SIGSEGV", "deadlock: threads wait for each other", as far as
	// they are the same for targets that fail alike.
	Facts []string
	// Builds are the modules in its stacks of which other targets have other builds.
	Builds []ModuleBuild
	// Threads are the stacks of the class by functions.
	Threads []ClassThread
	// PartsAt is where the class parts from the rest; nil for the largest class, and where its stacks
	// are the same and only facts or builds differ.
	PartsAt *Parting
	// Variants divide the class by lines, the smallest first.
	Variants []ClassVariant
	// Signature is made of the stack at which the class parts from the rest: equal for equal
	// stacks, in every comparison.
	Signature string
}

// ClassThread is a stack that threads of one role have in each target of a class.
type ClassThread struct {
	// Role is the name of the thread, without numbers, or the function that it was started for.
	Role string
	// Node is an index in the tree, of the innermost frame; -1: the thread has no frame, or none that it was
	// in at all moments.
	Node int
	// Moves is true where the thread stood elsewhere at another moment. Node is the innermost
	// frame that it was in at all moments then.
	Moves bool
	// Still is true where the thread stood there at several moments, in each target.
	Still bool
	// Crashed is true where the thread crashed.
	Crashed bool
	// Threads is the number of threads in all targets of the class; Least and Most are the numbers in one.
	Threads, Least, Most int
	// Incomplete is how many of the stacks end before their outermost frame, and Ends why one of them does.
	Incomplete int
	Ends       string
	// IDs are IDs of threads, each with its target, of at most MaxClassIDs threads.
	IDs []ClassThreadID
}

// MaxClassIDs is how many IDs of threads a ClassThread has.
const MaxClassIDs = 8

// ClassThreadID is a thread of a target.
type ClassThreadID struct {
	Target int // an index in Comparison.Targets
	ID     string
}

// ClassVariant is the targets of a class whose stacks are alike by lines too. Node of its threads is an
// index in Comparison.Lines.
type ClassVariant struct {
	Targets []int
	Threads []ClassThread
}

// Parting is where the stacks of a class part from the stacks of the other targets.
type Parting struct {
	// Role is the role of the thread, and Node its stack by functions: of ClassThread. The others are the
	// targets of other classes that have no such stack in that role. Of all stacks of the class it is the one that
	// the fewest other targets have.
	Role string
	Node int
	// IsMissing is true where the class differs by a stack that it has not: more of the other targets have that
	// in Role than miss a stack of the class. Node is the missing stack then, Last the innermost frame
	// on it that the class has in that role, Here is -1, and There leads to it.
	IsMissing bool
	// Last is the innermost frame that others have on this stack too, in the same role; -1: none has a
	// thread in that role with the same outermost function.
	Last int
	// Here is the next frame of the class; -1: the stack ends at Last.
	Here int
	// There are the next frames of others in that role, the most frequent first; -1 in it: their stack
	// ends at Last. They are at most MaxBranches, and More is how many there are beside these.
	There []PartingBranch
	More  int
}

// MaxBranches is how many branches a Parting has.
const MaxBranches = 8

// PartingBranch is where other targets went on from the last frame that they have in common with a class.
type PartingBranch struct {
	Node             int
	Targets, Threads int
}

// CallNode is a frame of the tree of a comparison: a function as called on one path.
type CallNode struct {
	// Parent is the index of the caller; -1: it is an outermost frame.
	Parent int
	Frame  ComparedFrame
	// Threads counts the threads whose stacks lead through the node, Ends those whose innermost frame it is,
	// Targets the targets that have such a thread.
	Threads, Ends, Targets int
	// Classes are indices in Comparison.Classes, in order: a target has a thread in the node if its class
	// is among them. Of a node of Lines, the classes of which a variant has. ClassCount is their number.
	// Where the lists of all nodes would be far longer than the trees, the longest are left out: nil.
	Classes    []int
	ClassCount int
	// Function is the node of Functions, in Lines.
	Function int
}

// ComparedFrame is a frame by which stacks are compared, and inlined calls are frames too. In
// Comparison.Functions it has no line.
type ComparedFrame struct {
	// Function is its name; "" where it is not known.
	Function string
	// Short is the name in short, where that differs.
	Short string
	// Module is the name of the module's file, without folders; "" where PC is in none, or the frame is
	// of a runtime.
	Module string
	// Offset is where the function begins in the module, or, where that is not known, the PC: only for
	// frames without a name.
	Offset uint64
	// Runtime is the language runtime of a managed frame: "cpython".
	Runtime string
	File    string
	Line    int
	Column  int
	// IsInlined marks a call that was inlined. IsWave marks a frame of a wave.
	IsInlined, IsWave bool
	// IsGuess marks a frame that is a guess or rests on one.
	IsGuess bool
}

// ModuleBuild is a build of a module.
type ModuleBuild struct {
	Name    string
	BuildID string // in hexadecimal
}

// ModuleBuilds are the builds of one module that targets have.
type ModuleBuilds struct {
	Name   string
	Builds []TargetsOfBuild // the rarest first
}

// TargetsOfBuild are the targets that have a build of a module.
type TargetsOfBuild struct {
	BuildID string // in hexadecimal; "": it is not known
	// Targets are indices in Comparison.Targets, in order, and Count is their number. Where the lists of all
	// modules would be far longer than the comparison, the longest are left out: nil.
	Targets []int
	Count   int
}

// Collective is a collective operation of a process group, as the flight recorders of its ranks have it.
type Collective struct {
	// Group names the process group, Sequence numbers its operations.
	Group    string
	Sequence int64
	// Operation is its name: "nccl:all_reduce".
	Operation string
	// Ranks are all ranks of the group as far as known; Entered are those that have it scheduled or
	// started, Completed those that have completed it, Missing those whose record ends before it, and
	// Unrecorded the ones without a record. All are in short: "0-5,7".
	Ranks, Entered, Completed, Missing, Unrecorded string
	// Different has, where ranks do not agree on the operation or its sizes, how they differ, each a
	// sentence.
	Different []string
	// Frames are where the first rank that entered called it, innermost first, as recorded.
	Frames []string
}
