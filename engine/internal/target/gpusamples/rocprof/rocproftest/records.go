// SPDX-License-Identifier: Apache-2.0

package rocproftest

import "strconv"

func (o *output) metadata(p *Process) {
	o.object("metadata", func() {
		o.object("node", func() {
			o.number("id", 0)
			o.number("hash", 0)
			o.text("machine_id", "0123456789abcdef0123456789abcdef")
			o.text("system_name", "Linux")
			o.text("hostname", "host")
			o.text("release", "6.8.0")
			o.text("version", "#1 SMP")
			o.text("hardware_name", "x86_64")
			o.text("domain_name", "(none)")
		})
		o.number("pid", uint64(p.PID)) //nolint:gosec // not negative
		o.number("init_time", 1)
		o.number("fini_time", 2)
		o.array("command", func() {
			for _, word := range p.Command {
				o.text("", word)
			}
		})
		o.object("config", func() {
			o.text("output_file", "out")
			o.boolean("json_output", true)
		})
	})
}

// A CPU is agent type 1, a GPU 2.
func (o *output) agent(a *Agent) {
	kind := uint64(1)
	if a.Lanes > 0 {
		kind = 2
	}
	o.number("size", 312)
	o.handle("id", a.Handle)
	o.number("type", kind)
	o.number("wave_front_size", uint64(a.Lanes)) //nolint:gosec // not negative
	o.number("num_xcc", 1)
	o.text("name", a.Name)
	o.text("vendor_name", "AMD")
	o.number("node_id", uint64(a.Node)) //nolint:gosec // not negative
	o.array("caches", func() {
		for i := range uint64(3) {
			o.object("", func() {
				o.number("processor_id_low", i)
				o.object("type", func() { o.number("Data", 1) })
			})
		}
	})
	o.signed("gpu_index", -1)
}

func (o *output) strings(p *Process, names map[int][]string) {
	o.object("strings", func() {
		o.array("callback_records", func() {})
		o.array("buffer_records", func() {
			for kind := range kinds {
				o.object("", func() {
					o.text("kind", "KIND_"+strconv.Itoa(kind))
					o.texts("operations", names[kind])
				})
			}
		})
		o.array("marker_api", func() {})
		o.object("correlation_id", func() { o.array("external", func() {}) })
		o.object("counters", func() { o.array("dimension_ids", func() {}) })
		o.texts("pc_sample_instructions", p.Instructions)
		o.texts("pc_sample_comments", p.Comments)
		o.array("att_filenames", func() {})
		o.texts("code_object_snapshot_filenames", []string{""})
	})
}

func (o *output) codeObject(c *Object) {
	size, storage := uint64(88), uint64(1)
	if c.ID == 0 {
		size, storage = 0, 0
	} else if c.InMemory > 0 {
		storage = 2
	}
	o.number("size", size)
	o.number("code_object_id", c.ID)
	o.handle("agent_id", c.Agent)
	o.text("uri", c.URI)
	o.number("load_base", c.Base)
	o.number("load_size", c.Size)
	o.signed("load_delta", c.Delta)
	o.number("storage_type", storage)
	switch storage {
	case 1:
		o.signed("storage_file", 5)
	case 2:
		o.number("memory_base", c.MemoryBase)
		o.number("memory_size", c.InMemory)
	}
}

func (o *output) kernel(k *Kernel) {
	size, name := uint64(88), k.Name+".kd"
	if k.ID == 0 {
		size, name = 0, ""
	}
	o.number("size", size)
	o.number("kernel_id", k.ID)
	o.number("code_object_id", k.Object)
	o.text("kernel_name", name)
	o.number("kernel_object", k.Descriptor)
	for _, n := range []string{"kernarg_segment_size", "kernarg_segment_alignment", "group_segment_size", "private_segment_size", "sgpr_count", "arch_vgpr_count", "accum_vgpr_count"} {
		o.number(n, 0)
	}
	o.signed("kernel_code_entry_byte_offset", int64(k.Entry-k.Descriptor)) //nolint:gosec // two's complement
	o.handle("kernel_address", k.Entry)
	for _, n := range []string{"formatted_kernel_name", "demangled_kernel_name", "truncated_kernel_name"} {
		o.text(n, name)
	}
}

func (o *output) dispatch(d *Dispatch) {
	o.number("size", 184)
	o.number("kind", kindDispatch)
	o.number("operation", 2)
	o.number("thread_id", uint64(d.TID)) //nolint:gosec // not negative
	o.correlation("correlation_id", d.Correlation)
	o.number("start_timestamp", d.Start)
	o.number("end_timestamp", d.End)
	o.object("dispatch_info", func() {
		o.number("size", 72)
		o.handle("agent_id", d.Agent)
		o.handle("queue_id", d.Queue)
		o.number("kernel_id", d.Kernel)
		o.number("dispatch_id", d.ID)
		o.number("private_segment_size", 0)
		o.number("group_segment_size", 0)
		o.three("workgroup_size", d.Group)
		o.three("grid_size", d.Grid)
	})
	o.handle("stream_id", 0)
}

func (o *output) calls(name string, calls []Call, kind uint64, names []string) {
	o.array(name, func() {
		for i := range calls {
			c := &calls[i]
			o.object("", func() {
				o.number("size", 88)
				o.number("kind", kind)
				o.number("operation", uint64(operation(names, c.Function))) //nolint:gosec // it is there
				o.object("correlation_id", func() {
					o.number("internal", c.Correlation)
					o.number("external", 0)
					o.number("ancestor", c.Ancestor)
				})
				o.number("start_timestamp", c.Start)
				o.number("end_timestamp", c.End)
				o.number("thread_id", uint64(c.TID)) //nolint:gosec // not negative
				if kind != kindHIP {
					return
				}
				o.array("args", func() {
					for i, value := range c.Arguments {
						o.object("", func() {
							o.text("type", "void*")
							o.text("name", "argument"+strconv.Itoa(i))
							o.text("value", value)
						})
					}
				})
				o.object("retval", func() { o.number("hipError_t_retval", 0) })
			})
		}
	})
}

// The prefixes of the names of enumerations.
const (
	typePrefix   = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_"
	reasonPrefix = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"
)

func (o *output) sample(s *Sample, isStochastic bool) {
	o.object("record", func() {
		if isStochastic {
			o.object("flags", func() { o.number("has_mem_cnt", 0) })
		}
		o.object("hw_id", func() { o.hardware(s) })
		o.object("pc", func() {
			o.number("code_object_id", s.Object)
			o.number("code_object_offset", s.Offset)
		})
		o.number("exec_mask", s.Mask)
		o.number("timestamp", s.Time)
		o.number("dispatch_id", s.Dispatch)
		o.correlation("corr_id", s.Correlation)
		o.three("wrkgrp_id", s.Group)
		o.number("wave_in_grp", uint64(s.WaveInGroup)) //nolint:gosec // not negative
		if !isStochastic {
			return
		}
		issued := uint64(0)
		if s.IsIssued {
			issued = 1
		}
		o.number("wave_issued", issued)
		o.text("inst_type", typePrefix+s.Type)
		o.number("wave_cnt", uint64(s.WaveCount)) //nolint:gosec // not negative
		o.object("snapshot", func() { o.snapshot(s) })
	})
	o.signed("inst_index", int64(s.Instruction))
}

// hardware writes the IDs of the parts that a wave ran on. One of the names ends in a
// blank.
func (o *output) hardware(s *Sample) {
	for i, name := range [...]string{
		"chiplet", "wave_id", "simd_id", "pipe_id", "cu_or_wgp_id", "shader_array_id", "shader_engine_id", "workgroup_id ", "vm_id", "queue_id", "microengine_id",
	} {
		o.number(name, (uint64(s.Group[0])+uint64(i))%12) //nolint:gosec // not negative
	}
}

var arbiters = func() (names []string) {
	for _, state := range []string{"issue", "stall"} {
		for _, pipe := range []string{"valu", "matrix", "lds", "lds_direct", "scalar", "vmem_tex", "flat", "exp", "misc", "brmsg"} {
			names = append(names, "arb_state_"+state+"_"+pipe)
		}
	}
	return names
}()

func (o *output) snapshot(s *Sample) {
	o.text("stall_reason", reasonPrefix+s.Reason)
	o.number("dual_issue_valu", 0)
	for i, name := range arbiters {
		o.number(name, s.Offset>>i&1)
	}
	o.number("lck_err", 0)
}

func (o *output) handle(name string, n uint64) {
	o.object(name, func() { o.number("handle", n) })
}

// correlation writes the IDs of an operation that happens later than its call. The
// external one is of the profiler's choice.
func (o *output) correlation(name string, internal uint64) {
	o.object(name, func() {
		o.number("internal", internal)
		o.number("external", 94902742904848)
	})
}

func (o *output) three(name string, n [3]uint32) {
	o.object(name, func() {
		o.number("x", uint64(n[0]))
		o.number("y", uint64(n[1]))
		o.number("z", uint64(n[2]))
	})
}
