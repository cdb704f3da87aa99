; The descriptors of LLVM 3.2, whose members stand in another order.
@g = global i32 7, align 4
define i32 @foo(i32 %a) {
entry:
  %X = alloca i32, align 4
  call void @llvm.dbg.declare(metadata !{i32* %X}, metadata !10), !dbg !12
  call void @llvm.dbg.value(metadata !{i32 %a}, i64 0, metadata !14), !dbg !12
  store i32 %a, i32* %X, align 4, !dbg !12
  %r = load i32* %X, align 4, !dbg !16
  ret i32 %r, !dbg !16
}
declare void @llvm.dbg.declare(metadata, metadata)
declare void @llvm.dbg.value(metadata, i64, metadata)
!llvm.dbg.cu = !{!0}
!0 = metadata !{i32 786449, i32 0, i32 12, metadata !"t.c", metadata !"/t", metadata !"clang version 3.2", i1 true, i1 false, metadata !"", i32 0, metadata !2, metadata !2, metadata !3, metadata !20} ; [ DW_TAG_compile_unit ]
!2 = metadata !{i32 0}
!3 = metadata !{metadata !4}
!4 = metadata !{i32 786478, i32 0, metadata !5, metadata !"foo", metadata !"foo", metadata !"", metadata !5, i32 1, metadata !6, i1 false, i1 true, i32 0, i32 0, null, i32 256, i1 false, i32 (i32)* @foo, null, null, metadata !2, i32 1} ; [ DW_TAG_subprogram ]
!5 = metadata !{i32 786473, metadata !"t.c", metadata !"/t", null} ; [ DW_TAG_file_type ]
!6 = metadata !{i32 786453, i32 0, metadata !"", i32 0, i32 0, i64 0, i64 0, i64 0, i32 0, null, metadata !7, i32 0, i32 0} ; [ DW_TAG_subroutine_type ]
!7 = metadata !{metadata !11, metadata !11}
!8 = metadata !{i32 786443, metadata !4, i32 2, i32 1, metadata !5, i32 0} ; [ DW_TAG_lexical_block ]
!9 = metadata !{i32 786447, null, metadata !"", null, i32 0, i64 64, i64 64, i64 0, i32 0, metadata !11} ; [ DW_TAG_pointer_type ]
!10 = metadata !{i32 786688, metadata !8, metadata !"X", metadata !5, i32 2, metadata !9, i32 0, i32 0} ; [ DW_TAG_auto_variable ]
!11 = metadata !{i32 786468, null, metadata !"int", null, i32 0, i64 32, i64 32, i64 0, i32 0, i32 5} ; [ DW_TAG_base_type ]
!12 = metadata !{i32 2, i32 7, metadata !8, null}
!14 = metadata !{i32 786689, metadata !4, metadata !"a", metadata !5, i32 16777217, metadata !11, i32 0, i32 0} ; [ DW_TAG_arg_variable ]
!16 = metadata !{i32 3, i32 3, metadata !4, null}
!20 = metadata !{metadata !21}
!21 = metadata !{i32 786484, i32 0, null, metadata !"g", metadata !"g", metadata !"", metadata !5, i32 9, metadata !11, i32 0, i32 1, i32* @g} ; [ DW_TAG_variable ]
