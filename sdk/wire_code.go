// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"slices"

	"github.com/unwindd/unwindd/locexpr"
	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func encodeTranslateRequest(r *TranslateRequest) *pb.TranslateRequest {
	p := &pb.TranslateRequest{
		Space: uint64(r.Space), Address: r.Address,
		Thread: r.Thread, Frame: r.Frame, Lane: r.Lane,
	}
	if r.Expr != nil {
		p.Subject = &pb.TranslateRequest_Expression{Expression: r.Expr}
	}
	return p
}

func decodeTranslateRequest(p *pb.TranslateRequest) (*TranslateRequest, error) {
	d := decoder{message: "TranslateRequest"}
	d.expression("expression", p.GetExpression())
	return result(&d, &TranslateRequest{
		Space: locexpr.AddressSpace(p.GetSpace()), Address: p.GetAddress(), Expr: p.GetExpression(),
		Thread: p.GetThread(), Frame: p.GetFrame(), Lane: p.GetLane(),
	})
}

func encodeTranslateAnswer(a *TranslateAnswer) *pb.TranslateAnswer {
	return &pb.TranslateAnswer{Expression: a.Expr}
}

func decodeTranslateAnswer(p *pb.TranslateAnswer) (*TranslateAnswer, error) {
	d := decoder{message: "TranslateAnswer"}
	d.expression("expression", p.GetExpression())
	return result(&d, &TranslateAnswer{Expr: nonEmpty(p.GetExpression())})
}

func (d *decoder) expression(field string, expr []byte) {
	if len(expr) > MaxExpression {
		d.fail(field, "%d bytes, expected at most %d", len(expr), MaxExpression)
	}
}

func encodeClassifyReturnRequest(r *ClassifyReturnRequest) (*pb.ClassifyReturnRequest, error) {
	lengths, err := lengthsOf("ClassifyReturnRequest.Offsets", r.Offsets, len(r.PCs), len(r.Code))
	if err != nil {
		return nil, err
	}
	return &pb.ClassifyReturnRequest{Pcs: r.PCs, Code: &pb.Blobs{Lengths: lengths, Data: r.Code}}, nil
}

func decodeClassifyReturnRequest(p *pb.ClassifyReturnRequest) (*ClassifyReturnRequest, error) {
	d := decoder{message: "ClassifyReturnRequest"}
	n := d.entries("pcs", len(p.GetPcs()))
	d.bytes("code", p.GetCode(), n)
	d.size32("code", p.GetCode().GetData())
	if d.err != nil {
		return nil, d.err
	}
	r := &ClassifyReturnRequest{}
	if n > 0 {
		r.PCs, r.Offsets, r.Code = p.GetPcs(), offsetsOf(p.GetCode().GetLengths()), nonEmpty(p.GetCode().GetData())
	}
	return r, nil
}

func encodeClassifyReturnAnswer(a *ClassifyReturnAnswer) *pb.ClassifyReturnAnswer {
	return &pb.ClassifyReturnAnswer{
		Classes: column(a.Classes, func(c *ReturnClass) pb.ReturnClass { return pb.ReturnClass(*c) }),
		Targets: a.Targets,
	}
}

func decodeClassifyReturnAnswer(p *pb.ClassifyReturnAnswer) (*ClassifyReturnAnswer, error) {
	d := decoder{message: "ClassifyReturnAnswer"}
	n := d.entries("classes", len(p.GetClasses()))
	enums(&d, "classes", p.GetClasses(), n, AfterIndirectCall)
	d.length("targets", len(p.GetTargets()), n)
	return result(&d, &ClassifyReturnAnswer{
		Classes: column(p.GetClasses(), func(c *pb.ReturnClass) ReturnClass { return ReturnClass(*c) }),
		Targets: p.GetTargets(),
	})
}

func encodeDisassembleRequest(r *DisassembleRequest) *pb.DisassembleRequest {
	return &pb.DisassembleRequest{Address: r.Address, Code: r.Code, Processor: r.Processor, Lanes: r.Lanes}
}

func decodeDisassembleRequest(p *pb.DisassembleRequest) (*DisassembleRequest, error) {
	d := decoder{message: "DisassembleRequest"}
	r := &DisassembleRequest{
		Address: p.GetAddress(), Code: nonEmpty(p.GetCode()), Processor: d.text("processor", p.GetProcessor()), Lanes: p.GetLanes(),
	}
	return result(&d, r)
}

func encodeDisassembleAnswer(a *DisassembleAnswer) *pb.DisassembleAnswer {
	p := &pb.DisassembleAnswer{
		Addresses: column(a.Instructions, func(i *Instruction) uint64 { return i.Address }),
		Sizes:     column(a.Instructions, func(i *Instruction) uint32 { return i.Size }),
		Texts:     blobs(a.Instructions, func(i *Instruction) string { return i.Text }),

		LlvmTriple: a.LLVM.Triple, LlvmCpu: a.LLVM.CPU, LlvmFeatures: a.LLVM.Features,

		Kinds: encodeKinds(a.Instructions), Accesses: encodeAccesses(a.Instructions),
	}
	if slices.ContainsFunc(a.Instructions, func(i Instruction) bool { return i.Register|i.RegisterBits != 0 }) {
		p.Registers = column(a.Instructions, func(i *Instruction) uint32 { return i.Register })
		p.RegisterBits = column(a.Instructions, func(i *Instruction) uint32 { return i.RegisterBits })
	}
	return p
}

func decodeDisassembleAnswer(p *pb.DisassembleAnswer) (*DisassembleAnswer, error) {
	d := decoder{message: "DisassembleAnswer"}
	n := d.entries("addresses", len(p.GetAddresses()))
	d.length("sizes", len(p.GetSizes()), n)
	texts := d.texts("texts", p.GetTexts(), n)
	if len(p.GetKinds()) > 0 {
		enums(&d, "kinds", p.GetKinds(), n, SystemCallInstruction)
	}
	if len(p.GetRegisters())+len(p.GetRegisterBits()) > 0 {
		d.length("registers", len(p.GetRegisters()), n)
		d.length("register_bits", len(p.GetRegisterBits()), n)
	}
	accesses := decodeAccesses(&d, p.GetAccesses(), n)
	a := &DisassembleAnswer{LLVM: LLVMTarget{
		Triple: d.text("llvm_triple", p.GetLlvmTriple()), CPU: d.text("llvm_cpu", p.GetLlvmCpu()), Features: d.text("llvm_features", p.GetLlvmFeatures()),
	}}
	a.Instructions = listOf(&d, n, func(i int) Instruction {
		instruction := Instruction{Address: p.Addresses[i], Size: p.Sizes[i], Text: texts.next(), Accesses: accesses.next()}
		if len(p.Kinds) > 0 {
			instruction.Kind = InstructionKind(p.Kinds[i]) //nolint:gosec // one of its values
		}
		if len(p.Registers) > 0 {
			instruction.Register, instruction.RegisterBits = p.Registers[i], p.RegisterBits[i]
		}
		return instruction
	})
	return result(&d, a)
}
