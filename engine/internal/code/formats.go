// SPDX-License-Identifier: Apache-2.0

package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// This file has plugins read code objects that are no ELF files.

// NewFormats returns the formats of files that architectures recognise by their first bytes.
func NewFormats(plugins *plugin.Manager) object.Formats { return formats{plugins} }

type formats struct{ plugins *plugin.Manager }

// Recognises reports whether an architecture claims a file with such a beginning. That several do
// is an error of Nested.
func (f formats) Recognises(beginning []byte) bool {
	_, err := f.plugins.ForObject(plugin.File{Magic: beginning})
	var several *plugin.ErrAmbiguous
	return err == nil || errors.As(err, &several)
}

// Nested asks the plugin of the architecture.
func (f formats) Nested(name string, data []byte) ([]object.Range, error) {
	arch, err := f.plugins.ForObject(plugin.File{Magic: data[:min(len(data), object.MaxMagic)]})
	if err != nil {
		return nil, err
	}
	// The plugin may still read when the caller is gone: a copy cannot fault.
	if len(data) > sdk.MaxFile {
		return nil, tooLarge(data)
	}
	answer, err := arch.OpenObject(context.Background(), wholeFile{data: bytes.Clone(data)}, &sdk.OpenObjectRequest{Object: 1, Path: name})
	if err != nil {
		return nil, err
	}
	list := make([]object.Range, len(answer.Nested))
	for i, n := range answer.Nested {
		list[i] = object.Range(n)
	}
	return list, nil
}

func tooLarge(data []byte) error {
	return fmt.Errorf("a file of %d bytes, expected at most %d", len(data), sdk.MaxFile)
}

// wholeFile is the engine as a plugin sees it in a call about one file without a target.
type wholeFile struct{ data []byte }

func (wholeFile) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, fmt.Errorf("there is no target: %w", target.ErrNoMemory)
}

func (wholeFile) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("there is no target, and no thread")
}

func (w wholeFile) ReadSection(_ context.Context, handle uint64, name string) ([]byte, error) {
	switch {
	case handle != 1:
		return nil, fmt.Errorf("no code object %d", handle)
	case name != "":
		return nil, fmt.Errorf("no section %s: %w", name, object.ErrNotELF)
	}
	return w.data, nil
}
