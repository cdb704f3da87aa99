package target

// A Stop says why a thread stopped, as what stopped it or what dumped it says.
// What is not said is not known.
type Stop struct {
	Reason string // one of the constants below
	// Address is what was accessed, in the default address space.
	Address    uint64
	HasAddress bool
	// TrapID is the number that the trap instruction has.
	TrapID    uint32
	HasTrapID bool
	// PCExact says that the PC is that of the instruction that stopped the thread.
	// Where it is false the thread executed that instruction some time before: the
	// PC is where it would go on.
	PCExact    bool
	HasPCExact bool
	// Details are all that the machine says, in its own words.
	Details []string
}

// Why a thread stopped (`stop.reason` of snapshots and of the output). Where
// several hold, the fault is told.
const (
	StopBreakpoint         = "breakpoint"
	StopWatchpoint         = "watchpoint"
	StopSingleStep         = "single-step"
	StopTrap               = "trap"                // a trap instruction
	StopMemoryFault        = "memory-fault"        // nothing is mapped at an address, or not for such an access
	StopAddressError       = "address-error"       // an address that no access may have: out of range, or not aligned
	StopIllegalInstruction = "illegal-instruction" // an instruction that the processor does not have
	StopMathError          = "math-error"          // an exception of floating-point or integer arithmetic
	StopECCError           = "ecc-error"           // memory that lost its contents
	StopFatalHalt          = "fatal-halt"          // the hardware gave up
)

// A StopReason is a reason with what a Stop may have beside it.
type StopReason struct {
	Name       string
	HasAddress bool // an access is why
	HasTrapID  bool
}

// StopReasons are all reasons.
var StopReasons = []StopReason{
	{Name: StopBreakpoint},
	{Name: StopWatchpoint, HasAddress: true},
	{Name: StopSingleStep},
	{Name: StopTrap, HasTrapID: true},
	{Name: StopMemoryFault, HasAddress: true},
	{Name: StopAddressError, HasAddress: true},
	{Name: StopIllegalInstruction},
	{Name: StopMathError},
	{Name: StopECCError, HasAddress: true},
	{Name: StopFatalHalt},
}

// FindStopReason returns the reason of a name; ok is false where there is none.
func FindStopReason(name string) (reason StopReason, ok bool) {
	for _, r := range StopReasons {
		if r.Name == name {
			return r, true
		}
	}
	return StopReason{}, false
}

// stopSignals are the reasons of signals that the hardware causes.
var stopSignals = map[string]string{
	"SIGILL":  StopIllegalInstruction,
	"SIGBUS":  StopAddressError,
	"SIGFPE":  StopMathError,
	"SIGSEGV": StopMemoryFault,
}

// StopOfSignal is why the hardware of an ELF machine stopped a thread that got a
// signal for it; ok is false for other signals.
func StopOfSignal(machine uint16, signal int) (reason StopReason, ok bool) {
	return FindStopReason(stopSignals[SignalName(machine, signal)])
}
