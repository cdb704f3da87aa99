// SPDX-License-Identifier: Apache-2.0

package ruby

// layout is where a version of Ruby has what: offsets in bytes. A member that it does not have is
// at absent. They are those of 64-bit x86 with glibc.
type layout struct {
	version string // the first two numbers of it

	vmMainThread, vmMainRactor uint64
	vmRactors                  uint64 // the list of ractors
	vmLock                     uint64 // the thread that has the GVL, where the VM has one for all

	ractorNode    uint64 // in the list of ractors
	ractorThread  uint64 // its main thread
	ractorRunning uint64 // the thread that has its GVL

	threadVM, threadEC, threadStatus, threadName uint64
	threadNative                                 uint64 // a pointer to what is known of its native thread
	threadID                                     uint64 // its LWP, in itself or at threadNative
	threadWaits                                  uint64 // its node among those who wait for the GVL
	lockWaiters                                  uint64 // the list of those, from the thread that has the GVL on

	ecFiber, ecThread, ecError, ecStackStart, ecStackSize uint64

	frameSize uint64

	fiberBefore uint64 // of a fiber: the one that has resumed it

	bodyFirstLine               uint64
	isFirstLinePlain            bool   // of 4 bytes; else it is an Integer
	bodyInfo                    uint64 // the list of lines, then positions, their number, and their index
	lineSize                    uint64 // bytes of a line's entry
	bodyLocals, bodyLocalCount  uint64
	bodyParent, bodyLocalParent uint64

	isTextLong bool   // strings have their length in front of their text, and arrays in 7 bits
	nilValue   uint64 // the value nil

	lastOperator uint64 // the greatest number of an operator's name

	className     uint64 // of a class from its start on; absent: a variable of it has the name
	classAttached uint64 // the object that a singleton class is of
	classIsNamed  uint64 // whether its name is that of constants
	isQualified   bool   // labels have the class of a method
	vmShapes      uint64 // the list of shapes, by which variables of classes are found; absent: a table has those
	isHashInline  bool   // a hash has its elements in itself

	// Of a list of callers: how many they are, and the first of them or a pointer to it.
	traceCount, traceFirst uint64
	isTraceInline          bool
	callerSize             uint64 // bytes of a caller
	callerIseq             uint64 // its instructions; the PC is behind them
	traceLeft              uint64 // callers behind the innermost that do not count
	isTraceOutward         bool   // the outermost caller is the first, and one in C leads to its own
}

// absent is the place of a member that a version does not have.
const absent = ^uint64(0)

// What all known versions have at the same place.
const (
	iseqBody = 16 // of an instruction sequence

	bodyType, bodySize, bodyCode         = 0, 4, 8
	bodyParams                           = 20 // how many of the locals are parameters
	classSuper                           = 16
	bodyPath, bodyBaseLabel, bodyLabel   = 64, 72, 80
	bodyBytes                            = 264 // all of a body that is read
	fiberObject, fiberEC                 = 16, 80
	infoCount, infoIndex                 = 16, 24
	framePC, frameIseq, frameSelf, frEP  = 0, 16, 24, 32
	ecStack, ecStackWords, ecFrame       = 0, 8, 16
	methodDefinition, methodOwner        = 16, 32
	definitionFunction, definitionNameID = 8, 32
)

// layouts are the known versions, by the headers of their releases.
var layouts = []layout{
	{
		version: "2.7", vmMainThread: 192, vmMainRactor: absent, vmRactors: absent, vmLock: 8,
		ractorNode: absent, ractorThread: absent, ractorRunning: absent,
		threadVM: 24, threadEC: 32, threadStatus: 80, threadName: 360, threadNative: absent, threadID: absent, threadWaits: 88, lockWaiters: 48,
		ecFiber: 48, ecThread: 56, ecError: 120, ecStackStart: 152, ecStackSize: 168, fiberBefore: 520, frameSize: 56,
		bodyFirstLine: 88, bodyInfo: 120, lineSize: 8, bodyLocals: 152, bodyLocalCount: 232, bodyParent: 168, bodyLocalParent: 176,
		nilValue: 8, vmShapes: absent, traceCount: 16, traceFirst: 0, callerSize: 24, callerIseq: 8, isTraceOutward: true, lastOperator: 168, className: absent, classAttached: absent, classIsNamed: absent,
	},
	{
		version: "3.0", vmMainThread: 40, vmMainRactor: 32, vmRactors: 8, vmLock: absent,
		ractorNode: 568, ractorThread: 528, ractorRunning: 336,
		threadVM: 32, threadEC: 40, threadStatus: 88, threadName: 384, threadNative: absent, threadID: absent, threadWaits: 96, lockWaiters: 48,
		ecFiber: 48, ecThread: 56, ecError: 120, ecStackStart: 152, ecStackSize: 168, fiberBefore: 520, frameSize: 56,
		bodyFirstLine: 88, bodyInfo: 120, lineSize: 8, bodyLocals: 152, bodyLocalCount: 232, bodyParent: 168, bodyLocalParent: 176,
		nilValue: 8, vmShapes: absent, traceCount: 8, traceFirst: 0, traceLeft: 1, callerSize: 24, callerIseq: 8, isTraceOutward: true, lastOperator: 168, className: absent, classAttached: absent, classIsNamed: absent,
	},
	{
		version: "3.1", vmMainThread: 40, vmMainRactor: 32, vmRactors: 8, vmLock: absent,
		ractorNode: 568, ractorThread: 528, ractorRunning: 336,
		threadVM: 32, threadEC: 40, threadStatus: 92, threadName: 352, threadNative: absent, threadID: 88, threadWaits: 104, lockWaiters: 48,
		ecFiber: 40, ecThread: 48, ecError: 112, ecStackStart: 144, ecStackSize: 160, fiberBefore: 512, frameSize: 64,
		bodyFirstLine: 88, bodyInfo: 120, lineSize: 12, bodyLocals: 152, bodyLocalCount: 240, bodyParent: 168, bodyLocalParent: 176,
		nilValue: 8, vmShapes: absent, traceCount: 8, traceFirst: 0, callerSize: 32, callerIseq: 8, lastOperator: 169, className: absent, classAttached: absent, classIsNamed: absent,
	},
	{
		version: "3.2", vmMainThread: 40, vmMainRactor: 32, vmRactors: 8, vmLock: absent,
		ractorNode: 568, ractorThread: 528, ractorRunning: 336,
		threadVM: 32, threadEC: 48, threadStatus: 112, threadName: 304, threadNative: 40, threadID: 16, threadWaits: 56, lockWaiters: 48,
		ecFiber: 40, ecThread: 48, ecError: 120, ecStackStart: 152, ecStackSize: 168, fiberBefore: 680, frameSize: 64,
		bodyFirstLine: 88, isFirstLinePlain: true, bodyInfo: 112, lineSize: 12, bodyLocals: 144, bodyLocalCount: 232, bodyParent: 160, bodyLocalParent: 168,
		isTextLong: true, nilValue: 4, vmShapes: 376, traceCount: 8, traceFirst: 0, callerSize: 32, callerIseq: 8, lastOperator: 169, className: absent, classAttached: absent, classIsNamed: absent,
	},
	{
		version: "3.3", vmMainThread: 40, vmMainRactor: 32, vmRactors: 8, vmLock: absent,
		ractorNode: 432, ractorThread: 392, ractorRunning: 328,
		threadVM: 32, threadEC: 48, threadStatus: 240, threadName: 432, threadNative: 40, threadID: 24, threadWaits: 72, lockWaiters: 16,
		ecFiber: 40, ecThread: 48, ecError: 120, ecStackStart: 152, ecStackSize: 168, fiberBefore: 680, frameSize: 56,
		bodyFirstLine: 88, isFirstLinePlain: true, bodyInfo: 112, lineSize: 12, bodyLocals: 144, bodyLocalCount: 232, bodyParent: 160, bodyLocalParent: 168,
		isTextLong: true, nilValue: 4, vmShapes: absent, isHashInline: true, traceCount: 0, traceFirst: 24, isTraceInline: true, callerSize: 32, callerIseq: 8, lastOperator: 169, className: 32 + 120, classAttached: 32 + 96, classIsNamed: 32 + 117,
	},
	{
		version: "3.4", vmMainThread: 40, vmMainRactor: 32, vmRactors: 8, vmLock: absent,
		ractorNode: 432, ractorThread: 392, ractorRunning: 328,
		threadVM: 32, threadEC: 48, threadStatus: 240, threadName: 432, threadNative: 40, threadID: 24, threadWaits: 72, lockWaiters: 16,
		ecFiber: 40, ecThread: 48, ecError: 112, ecStackStart: 144, ecStackSize: 160, fiberBefore: 664, frameSize: 56,
		bodyFirstLine: 88, isFirstLinePlain: true, bodyInfo: 112, lineSize: 12, bodyLocals: 144, bodyLocalCount: 232, bodyParent: 160, bodyLocalParent: 168,
		isTextLong: true, nilValue: 4, vmShapes: absent, isHashInline: true, traceCount: 0, traceFirst: 24, isTraceInline: true, callerSize: 24, callerIseq: 8, lastOperator: 169, className: 32 + 120, classAttached: 32 + 96, classIsNamed: 32 + 117, isQualified: true,
	},
}

// layoutOf returns the layout of a version: "3.1.2".
func layoutOf(version string) *layout {
	for i := range layouts {
		l := &layouts[i]
		if n := len(l.version); len(version) > n && version[:n] == l.version && version[n] == '.' {
			return l
		}
	}
	return nil
}
