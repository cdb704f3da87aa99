package profile

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/object"
)

type kernelCode struct {
	object        *object.Object
	section       string
	address, size uint64
}

type kernelObjects struct{ list []*object.Object }

func newKernelObjects(list []*object.Object) *kernelObjects { return &kernelObjects{list} }

func (k *kernelObjects) find(name string) (at kernelCode, problem string) {
	problem = "no object that was given has it"
	for _, o := range k.list {
		_ = o.EachSymbol(func(s *object.Symbol) {
			if s.Type == elf.STT_FUNC && s.Defined() && s.Name == name {
				at = kernelCode{object: o, address: s.Address, size: s.Size}
				problem = ""
			}
		})
	}
	return at, problem
}
