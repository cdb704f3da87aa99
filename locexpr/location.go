package locexpr

// AddressSpace is an architecture's number for an address space
// (heterogeneous extension, A.2.13). 0 is the default address space.
type AddressSpace uint64

// DefaultSpace is the default address space of every architecture.
const DefaultSpace AddressSpace = 0

// StorageKind is one of the kinds of location storage (A.2.5.3).
type StorageKind uint8

// The kinds of location storage. The zero value is Undefined, so that a zero
// Place and a zero Location say that nothing is known.
const (
	Undefined       StorageKind = iota // no value is available
	Memory                             // bytes of an address space
	Register                           // a register of a thread
	Implicit                           // a fixed value, read only
	ImplicitPointer                    // a pointer that was optimized away; its target is known
	Composite                          // parts, each a location of its own
)

// A Scope says whose storage a place names: the context elements that were in
// force when the place was made (A.2.5.3: a location description stays bound to
// the context that created it).
type Scope struct {
	Thread uint64 // the target's handle for the thread; meaningless for global memory
	Frame  int32  // 0 is the top frame
	Lane   int32  // -1: no lane was current
}

// A Place is a single location description: a storage, and a bit offset from
// the storage's start.
type Place struct {
	Storage   StorageKind
	Space     AddressSpace // Memory: the address space
	Address   uint64       // Memory: the byte address that BitOffset counts from
	Register  uint64       // Register: the DWARF register number
	BitOffset uint64       // bits from the start of the storage
	Scope     Scope
	detail    *detail // Implicit, ImplicitPointer, Composite
}

// detail is what the rarer storages hold.
type detail struct {
	bytes  []byte // Implicit: the value, in the byte order of the architecture
	bits   uint64 // Implicit, Composite: size of the storage
	parts  []Part // Composite
	entry  uint64 // ImplicitPointer: section offset of the debugging information entry
	offset int64  // ImplicitPointer: byte displacement
}

// A Part is a bit range of a composite: Bits bits of Location, in storage order.
type Part struct {
	Bits     uint64
	Location Location
}

// A Location is a location description: one or more places that hold the same
// value. The zero Location is the undefined location description.
type Location struct {
	place Place
	more  []Place // the further places; nearly always empty
}
