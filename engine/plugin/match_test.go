// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"debug/elf"
	"errors"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// machine is a machine of a number, in any class and encoding.
func machine(number uint16) object.ELFMachine { return object.ELFMachine{Number: number} }

// claiming is a plugin in this process that recognises something.
type claiming struct {
	sdk.Base
	d *sdk.Description
}

func (c claiming) Describe(context.Context) (*sdk.Description, error) { return c.d, nil }

// claims makes an architecture with the recognisers.
func claims(name string, order sdk.ByteOrder, r ...sdk.Recogniser) sdk.Architecture {
	d := testDescription(good)
	d.Name, d.ByteOrder, d.Recognises = name, order, r
	return claiming{d: d}
}

var (
	le64 = object.ELFMachine{Number: 21, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB}
	be64 = object.ELFMachine{Number: 21, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB}
	be32 = object.ELFMachine{Number: 21, Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB}
)

// One machine in two byte orders and two widths is of three architectures, which are told apart
// by what their recognisers say, whether by code object or by machine.
func TestClassAndEncodingTellMachinesApart(t *testing.T) {
	m := manager(t, Options{InProcess: []sdk.Architecture{
		claims("le64", sdk.LittleEndian, sdk.Recogniser{ELFMachine: 21, OSABI: -1, ELFData: 1}),
		claims("be64", sdk.BigEndian, sdk.Recogniser{ELFMachine: 21, OSABI: -1, ELFClass: 2, ELFData: 2}),
		claims("be32", sdk.BigEndian, sdk.Recogniser{ELFMachine: 21, OSABI: -1, ELFClass: 1, ELFData: 2}),
	}})
	for want, machine := range map[string]object.ELFMachine{"le64": le64, "be64": be64, "be32": be32} {
		a, err := m.ForMachine(machine)
		if err != nil || a.Name() != want {
			t.Errorf("%s: %v, %v", machine, a, err)
		}
		if a, err := m.ForObject(File{Machine: machine}); err != nil || a.Name() != want {
			t.Errorf("an object of %s: %v, %v", machine, a, err)
		}
	}
	none := object.ELFMachine{Number: 21, Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB}
	if a, err := m.ForMachine(none); err != nil || a.Name() != "le64" {
		t.Errorf("a class that no recogniser excludes: %v, %v", a, err)
	}
}

// What no plugin claims names the class and the byte order, where others of the machine are there.
func TestAMachineOfAnotherByteOrderIsNamed(t *testing.T) {
	m := manager(t, Options{InProcess: []sdk.Architecture{claims("be64", sdk.BigEndian, sdk.Recogniser{ELFMachine: 21, OSABI: -1, ELFData: 2})}})
	_, err := m.ForMachine(le64)
	if want := "no architecture plugin for ELF machine 21 (ppc64), 64-bit, little-endian"; err == nil || err.Error() != want || !errors.Is(err, ErrNoArchitecture) {
		t.Errorf("%v, expected %s", err, want)
	}
}

// The recogniser that sets more members wins; a machine alone, without flags, is of the one that
// claims all of it. Two that set as many are an error that names the settings which decide.
func TestTheMostSpecificRecogniserWins(t *testing.T) {
	all := sdk.Recogniser{ELFMachine: 224, OSABI: -1}
	one := sdk.Recogniser{ELFMachine: 224, OSABI: -1, FlagsMask: 0xff, Flags: 0x49}
	m := manager(t, Options{InProcess: []sdk.Architecture{claims("gfx1250", sdk.LittleEndian, one), claims("amdgpu", sdk.LittleEndian, all)}})
	for flags, want := range map[uint32]string{0x49: "gfx1250", 0x549: "gfx1250", 0x4a: "amdgpu"} {
		if a, err := m.ForObject(File{Machine: machine(224), Flags: flags}); err != nil || a.Name() != want {
			t.Errorf("flags %#x: %v, %v", flags, a, err)
		}
	}
	if a, err := m.ForMachine(machine(224)); err != nil || a.Name() != "amdgpu" {
		t.Errorf("the machine: %v, %v", a, err)
	}

	m = manager(t, Options{InProcess: []sdk.Architecture{claims("a", sdk.LittleEndian, one), claims("b", sdk.LittleEndian, all, one), claims("c", sdk.LittleEndian, all)}})
	_, err := m.ForObject(File{Machine: machine(224), Flags: 0x49})
	var several *ErrAmbiguous
	if !errors.As(err, &several) || len(several.Names) != 2 || !strings.Contains(err.Error(), `disabled = ["NAME"]`) || !strings.Contains(err.Error(), "[plugins.replace]") {
		t.Errorf("%v", err)
	}
}

// Names of descriptions count more than names of executables, and a byte order chooses.
func TestNamesAreOfDescriptionsFirst(t *testing.T) {
	r := sdk.Recogniser{ELFMachine: 40, OSABI: -1}
	m := manager(t, Options{InProcess: []sdk.Architecture{claims("arm", sdk.LittleEndian, r), claims("arm", sdk.BigEndian, r)}})
	if a, err := m.FindOrdered("arm", sdk.BigEndian); err != nil || a.Description().ByteOrder != sdk.BigEndian {
		t.Errorf("%v, %v", a, err)
	}
	_, err := m.Find("arm")
	if err == nil || !strings.Contains(err.Error(), "same name") {
		t.Errorf("%v", err)
	}
	a := &Arch{caller: caller{plugin: "beta"}, desc: &sdk.Description{Name: "arm"}}
	if named(a, "arm") <= named(a, "beta") || named(a, "beta") == 0 || named(a, "x") != 0 {
		t.Error("a description's name counts most")
	}
}
