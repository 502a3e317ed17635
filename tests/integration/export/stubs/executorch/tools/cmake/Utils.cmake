# A stub of ExecuTorch's.
function(executorch_target_link_options_shared_lib target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "no target ${target}")
  endif()
endfunction()
