// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// topMember is the member of the file that contains everything.
const topMember = "rocprofiler-sdk-tool"

// maxAhead bounds the search for topMember.
const maxAhead = 1 << 20

// advice is how to record a file that can be read.
const advice = "record JSON: rocprofv3 --pc-sampling-beta-enabled --pc-sampling-method host_trap --pc-sampling-unit time " +
	"--pc-sampling-interval 100 --kernel-trace --hip-trace --output-format json -- PROGRAM, and give *_results.json"

// otherOutputs are the beginnings of the other files that rocprofv3 writes.
var otherOutputs = []struct{ begin, reason string }{
	{"SQLite format 3\x00", "a rocpd database: no release of ROCm writes samples of program counters into one"},
	{`"Sample_Timestamp","Exec_Mask",`, "a CSV of PC samples by rocprofv3, which has the texts of instructions but no addresses"},
	{`"Kind","Agent_Id",`, "a CSV trace by rocprofv3, which has no samples"},
	{`"Domain","Function",`, "a CSV trace by rocprofv3, which has no samples"},
	{`"Correlation_Id","Dispatch_Id",`, "a CSV of counters by rocprofv3, which has no samples"},
	{`"Node_Id","Logical_Node_Id",`, "a CSV of agents by rocprofv3, which has no samples"},
}

// recognise returns the reason why a file is no JSON of rocprofv3; nil where it is one.
func recognise(data []byte) error {
	for _, o := range otherOutputs {
		if bytes.HasPrefix(data, []byte(o.begin)) {
			return fmt.Errorf("%s: %s", o.reason, advice)
		}
	}
	found := errors.New("found")
	r := jsontext.Reader{Data: data[:min(len(data), maxAhead)]}
	err := r.Object(func(name []byte) error {
		if string(name) == topMember {
			return found
		}
		return r.Skip()
	})
	switch {
	case errors.Is(err, found):
		return nil
	case err == nil, r.At >= maxAhead:
		return fmt.Errorf("%w: it has no member %s", gpusamples.ErrOtherForm, topMember)
	}
	return fmt.Errorf("%w: %w", gpusamples.ErrOtherForm, err)
}
