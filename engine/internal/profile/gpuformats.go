// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/iaprof"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/jsonlines"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/rocprof"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/unitrace"
)

// gpuFormats are the formats of files of samples of accelerators. The first that accepts a file
// counts.
var gpuFormats = []struct {
	name string
	open func(path string) (gpusamples.File, error)
}{
	{rocprof.Form, opener(rocprof.Open)},
	{jsonlines.Form, opener(jsonlines.Open)},
	{unitrace.Form, opener(unitrace.Open)},
	{iaprof.Form, opener(iaprof.Open)},
}

// opener adapts the function that opens files of a format.
func opener[F gpusamples.File](open func(string) (F, error)) func(string) (gpusamples.File, error) {
	return func(path string) (gpusamples.File, error) {
		f, err := open(path)
		if err != nil {
			return nil, err // not an interface with nil in it
		}
		return f, nil
	}
}

// openGPU opens a file of samples, in the format that its contents have.
func openGPU(path string) (gpusamples.File, error) {
	var reasons []string
	for i := range gpuFormats {
		f, err := gpuFormats[i].open(path)
		if err == nil || !errors.Is(err, gpusamples.ErrOtherForm) {
			return f, err
		}
		reason := strings.TrimPrefix(err.Error(), fmt.Sprintf("%s: %v: ", path, gpusamples.ErrOtherForm))
		reasons = append(reasons, fmt.Sprintf("as %s: %s", gpuFormats[i].name, reason))
	}
	return nil, fmt.Errorf("%s: %w of samples of accelerators: %s", path, gpusamples.ErrOtherForm, strings.Join(reasons, "; "))
}

// openAllGPU opens files of samples, all or none.
func openAllGPU(paths []string) (files []gpusamples.File, err error) {
	for _, path := range paths {
		f, err := openGPU(path)
		if err != nil {
			return nil, errors.Join(err, closeAllGPU(files))
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAllGPU(files []gpusamples.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
